//! Pods behind the proxy of their node.

use serde_json::json;

use super::world::{end, evidence_with, pod, question, shop};
use crate::explain::{Evidence, Explanation, Outcome, explain};
use crate::model::Pins;
use crate::translate::Settings;

/// What is known where these pods are pinned.
fn evidence(asked: &str, pinned: &[&str]) -> Evidence {
    let mut world = shop();
    world.push(pod("shop", "behind", json!({"metadata": {"uid": "behind"}})));
    world.push(pod("shop", "beside", json!({"metadata": {"uid": "beside"}})));
    let uids = pinned.iter().map(|uid| (*uid).into()).collect();
    let pins = Pins { folder: "/run/aether/netns".into(), uids };
    evidence_with(&world, &question(asked), &Settings::default(), Some(pins))
}

fn told(asked: &str, pinned: &[&str]) -> Explanation {
    explain(&question(asked), &evidence(asked, pinned)).unwrap()
}

#[test]
fn a_pinned_pod_is_told_which_proxy_it_is_behind_and_another_is_not() {
    for (asked, behind) in [("shop/behind web http", true), ("shop/beside web http", false)] {
        let told = told(asked, &["behind"]);
        let notes = told.steps[0].notes.join("\n");
        assert_eq!(
            notes.contains("its proxy is node/n1, that of its whole node"),
            behind,
            "{notes}"
        );
        let Outcome::Service { service, endpoints, .. } = end(&told) else { panic!("{told:#?}") };
        assert_eq!((service.as_str(), endpoints.len()), ("shop/web", 2));
    }
}

#[test]
fn what_is_explained_is_what_the_node_proxy_is_served() {
    let asked = "shop/behind web http";
    let of_node = evidence(asked, &["behind"]);
    assert_eq!(of_node.node_proxy.as_deref(), Some("node/n1"));
    // The view is that of all pods of the node: it has the listener of another pinned pod too.
    let both = evidence(asked, &["behind", "beside"]).view.unwrap();
    assert!(both.owns(crate::xds::Kind::Listener, "capture_shop_beside"));
    let own = evidence(asked, &[]);
    assert_eq!(own.node_proxy, None);
    assert!(!own.view.unwrap().owns(crate::xds::Kind::Listener, "capture_shop_beside"));
    // All but the first step is the same as with a sidecar.
    let (behind, beside) = (told(asked, &["behind"]), told(asked, &[]));
    assert_eq!(behind.steps[1..], beside.steps[1..]);
    assert_eq!((behind.paths, behind.verdict), (beside.paths, beside.verdict));
}

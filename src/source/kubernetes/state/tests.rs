#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::kinds::Followed;
use super::super::seen::Seen;
use super::*;

fn read<K: Followed>(object: &Value) -> Read {
    Seen::<K>::of(&object.to_string()).read
}

fn pod(name: &str, ip: &str) -> Read {
    read::<Pod>(&json!({
        "metadata": { "name": name, "namespace": "shop" },
        "spec": { "containers": [] },
        "status": { "podIP": ip },
    }))
}

/// A pod with a list where an object belongs.
fn broken(name: &str) -> Read {
    read::<Pod>(&json!({ "metadata": { "name": name, "namespace": "shop" }, "status": [] }))
}

/// A state in which every kind is listed, with these pods, whose first update was taken.
fn begun(pods: &[Read]) -> State {
    let mut state = State::default();
    for kind in KINDS {
        state.take(kind, Event::Init);
        if kind == ObjectKind::Pod {
            for pod in pods {
                state.take(kind, Event::InitApply(pod.clone()));
            }
        }
        state.take(kind, Event::InitDone);
    }
    state.update();
    state
}

fn relist(state: &mut State, pods: Vec<Read>) {
    state.take(ObjectKind::Pod, Event::Init);
    for pod in pods {
        state.take(ObjectKind::Pod, Event::InitApply(pod));
    }
    state.take(ObjectKind::Pod, Event::InitDone);
}

/// The changes in words: `+name` and `-name`.
fn words(update: &Update) -> Vec<String> {
    let word = |change: &Change| match change {
        Change::Put { id, .. } => format!("+{}", id.name),
        Change::Remove(id) => format!("-{}", id.name),
    };
    update.changes.iter().map(word).collect()
}

#[test]
fn nothing_is_told_before_every_kind_is_listed_and_then_all_at_once() {
    let mut state = State::default();
    for (at, kind) in KINDS.into_iter().enumerate() {
        assert!(!state.has_update(), "{kind:?}");
        assert_eq!(state.missing().len(), KINDS.len() - at);
        state.take(kind, Event::Init);
        if kind == ObjectKind::Node {
            let node = json!({ "metadata": { "name": "n1" } });
            state.take(kind, Event::InitApply(read::<Node>(&node)));
        }
        state.take(kind, Event::InitDone);
        if kind == ObjectKind::Node {
            // Changes that come before the others are listed count too.
            let node = json!({ "metadata": { "name": "n2" } });
            state.take(kind, Event::Apply(read::<Node>(&node)));
            state.take(kind, Event::Apply(read::<Node>(&json!({ "metadata": { "name": "n3" } }))));
            state.take(kind, Event::Delete(read::<Node>(&json!({ "metadata": { "name": "n3" } }))));
        }
    }
    assert!(state.has_update());
    assert_eq!(words(&state.update()), ["+n1", "+n2"], "of n3 nobody needs to hear");
    assert!(!state.has_update());
}

#[test]
fn an_empty_cluster_is_a_state_too() {
    let mut state = State::default();
    for kind in KINDS {
        state.take(kind, Event::Init);
        state.take(kind, Event::InitDone);
    }
    assert!(state.has_update());
    assert!(state.update().changes.is_empty());
    assert!(!state.has_update());
}

#[test]
fn an_object_that_is_what_it_was_is_no_change() {
    let mut state = begun(&[pod("a", "10.0.0.1")]);
    state.take(ObjectKind::Pod, Event::Apply(pod("a", "10.0.0.1")));
    assert!(!state.has_update());
    state.take(ObjectKind::Pod, Event::Apply(pod("a", "10.0.0.2")));
    assert_eq!(words(&state.update()), ["+a"]);
    relist(&mut state, vec![pod("a", "10.0.0.2")]);
    assert!(!state.has_update(), "a list of the same");
}

#[test]
fn what_never_matters_is_no_change() {
    let mut state = begun(&[]);
    let node = |version: &str, heartbeat: &str| {
        read::<Node>(&json!({ "metadata": {
            "name": "n1", "resourceVersion": version,
            "annotations": { "volumes.kubernetes.io/heartbeat": heartbeat },
        } }))
    };
    state.take(ObjectKind::Node, Event::Apply(node("1", "a")));
    assert!(state.has_update());
    state.update();
    state.take(ObjectKind::Node, Event::Apply(node("2", "b")));
    assert!(!state.has_update());
    let service = |status: Value| {
        read::<Service>(
            &json!({ "metadata": { "name": "s", "namespace": "shop" }, "status": status }),
        )
    };
    state.take(ObjectKind::Service, Event::Apply(service(json!({}))));
    state.update();
    let status = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
    state.take(ObjectKind::Service, Event::Apply(service(status)));
    assert!(!state.has_update());
}

#[test]
fn a_new_list_counts_whole_and_what_it_lacks_is_gone() {
    let mut state = begun(&[pod("a", "10.0.0.1"), pod("b", "10.0.0.2")]);
    state.take(ObjectKind::Pod, Event::Init);
    state.take(ObjectKind::Pod, Event::InitApply(pod("c", "10.0.0.3")));
    assert!(!state.has_update(), "half a list is nothing");
    // It breaks off and begins anew.
    relist(&mut state, vec![pod("b", "10.0.0.9"), pod("d", "10.0.0.4")]);
    assert_eq!(words(&state.update()), ["-a", "+b", "+d"]);
    assert_eq!(state.count(ObjectKind::Pod), 2);
}

#[test]
fn what_cannot_be_read_costs_itself_alone_and_keeps_its_last_form() {
    let mut state = begun(&[pod("a", "10.0.0.1"), broken("b")]);
    assert_eq!(state.count(ObjectKind::Pod), 1);
    state.take(ObjectKind::Pod, Event::Apply(broken("a")));
    assert!(state.has_update());
    let update = state.update();
    assert_eq!(words(&update), Vec::<String>::new());
    let told: Vec<_> = update.findings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("Pod shop/a, status: ") && told[0].contains("form is kept"),
        "{told:?}"
    );
    assert!(told[1].contains("Pod shop/b, status: ") && told[1].contains("left out"), "{told:?}");
    // The same again is no news, by a list or by itself.
    state.take(ObjectKind::Pod, Event::Apply(broken("a")));
    relist(&mut state, vec![broken("a"), broken("b")]);
    assert!(!state.has_update());
    state.take(ObjectKind::Pod, Event::Apply(pod("a", "10.0.0.1")));
    let update = state.update();
    assert!(update.changes.is_empty(), "its form is the one that was kept");
    assert_eq!(update.findings.len(), 1);
    state.take(ObjectKind::Pod, Event::Delete(broken("b")));
    assert!(state.update().findings.is_empty());
    relist(&mut state, vec![broken("a")]);
    state.update();
    state.take(ObjectKind::Pod, Event::Delete(broken("a")));
    assert_eq!(words(&state.update()), ["-a"]);
}

#[test]
fn what_waits_to_be_taken_is_as_large_as_the_objects() {
    let mut state = begun(&[]);
    for round in 0..1000 {
        state.take(
            ObjectKind::Pod,
            Event::Apply(pod("a", &format!("10.0.{}.{}", round / 250, round % 250))),
        );
    }
    assert_eq!(state.update().changes.len(), 1);
}

proptest! {
    /// Whatever comes in whatever order, updates laid on top of each other are what the server has.
    #[test]
    fn updates_add_up_to_what_there_is(steps in prop::collection::vec((0..6u8, 0..5u8, 0..3u8, any::<bool>()), 1..60)) {
        let mut state = begun(&[]);
        let mut server: BTreeMap<String, u8> = BTreeMap::new();
        let mut told: BTreeMap<String, u8> = BTreeMap::new();
        for (step, name, form, take) in steps {
            let name = format!("p{name}");
            let ip = format!("10.0.0.{form}");
            match step {
                0 | 1 => {
                    server.insert(name.clone(), form);
                    state.take(ObjectKind::Pod, Event::Apply(pod(&name, &ip)));
                }
                2 => {
                    server.remove(&name);
                    state.take(ObjectKind::Pod, Event::Delete(pod(&name, &ip)));
                }
                // Changes that happened while nobody watched.
                3 => {
                    server.insert(name, form);
                    server.remove(&format!("p{form}"));
                    let all = server.iter().map(|(name, form)| pod(name, &format!("10.0.0.{form}")));
                    relist(&mut state, all.collect());
                }
                // A list that breaks off.
                _ => {
                    state.take(ObjectKind::Pod, Event::Init);
                    state.take(ObjectKind::Pod, Event::InitApply(pod(&name, &ip)));
                    let all = server.iter().map(|(name, form)| pod(name, &format!("10.0.0.{form}")));
                    relist(&mut state, all.collect());
                }
            }
            if take {
                lay(&mut told, state.update());
                prop_assert_eq!(&told, &server);
            }
        }
        lay(&mut told, state.update());
        prop_assert_eq!(told, server);
    }
}

fn lay(told: &mut BTreeMap<String, u8>, update: Update) {
    for change in update.changes {
        match change {
            Change::Put { id, object: Object::Pod(pod), .. } => {
                let ip = pod.status.unwrap().pod_ip.unwrap();
                told.insert(id.name.to_string(), ip.rsplit('.').next().unwrap().parse().unwrap());
            }
            Change::Put { .. } => panic!("no pod"),
            Change::Remove(id) => drop(told.remove(&*id.name)),
        }
    }
}

//! `config.aether.io/upstreams`: what a pod calls.

use serde_json::{Value, json};

use super::{annotated, found, merge, project, service};
use crate::model::{Projection, Reason, Severity, Upstreams};

fn pod(upstreams: Option<&str>) -> Value {
    let mut pod = json!({
        "kind": "Pod",
        "metadata": { "namespace": "shop", "name": "web", "labels": { "aether.io/managed": "true" } },
        "spec": { "containers": [] }
    });
    if let Some(upstreams) = upstreams {
        merge(&mut pod, annotated("config.aether.io/upstreams", upstreams));
    }
    pod
}

/// What the pod calls; `None`: all.
fn listed(projection: &Projection) -> Option<Vec<String>> {
    match &projection.pods.values().next().unwrap().upstreams {
        Upstreams::All => None,
        Upstreams::Listed(listed) => Some(listed.iter().map(ToString::to_string).collect()),
    }
}

/// The annotation, what the pod calls (`None`: all), and how many problems there are.
type Row<'a> = (Option<&'a str>, Option<&'a [&'a str]>, usize);

#[test]
fn the_list_is_read_entry_by_entry() {
    let long = "x".repeat(64);
    let more = (0..8).map(|n| format!("No{n}")).collect::<Vec<_>>().join(",");
    let table: [Row<'_>; 18] = [
        (None, None, 0),
        (Some(""), Some(&[]), 0),
        (Some(" , ,"), Some(&[]), 0),
        (Some("cart"), Some(&["shop/cart"]), 0),
        (Some("pay/cart"), Some(&["pay/cart"]), 0),
        (Some(" cart ,pay/till,\n cart"), Some(&["pay/till", "shop/cart"]), 0),
        (Some("shop/cart,cart"), Some(&["shop/cart"]), 0),
        (Some("cart,"), Some(&["shop/cart"]), 0),
        // A wrong entry costs itself alone.
        (Some("cart,Till"), Some(&["shop/cart"]), 1),
        (Some("cart,till.pay"), Some(&["shop/cart"]), 1),
        (Some("cart,pay/,/till,a/b/c,*"), Some(&["shop/cart"]), 4),
        (Some("cart;till"), None, 1),
        (Some("cart till,web"), Some(&["shop/web"]), 1),
        // Where there is no other the annotation says nothing.
        (Some("*"), None, 1),
        (Some("Cart"), None, 1),
        (Some("Cart,Till"), None, 2),
        (Some(&long), None, 1),
        // However many there are, they are not all told.
        (Some(&more), None, 6),
    ];
    for (annotation, expected, problems) in table {
        let projection = project(&[pod(annotation)]);
        let expected = expected.map(|keys| keys.iter().map(ToString::to_string).collect());
        assert_eq!(listed(&projection), expected, "{annotation:?}");
        let found = found(&projection, Reason::InvalidValue);
        assert_eq!(found.len(), problems, "{annotation:?}: {found:?}");
        for finding in found {
            assert_eq!(finding.severity, Severity::Problem);
            assert_eq!(finding.object.to_string(), "Pod shop/web");
            assert_eq!(finding.field, "metadata.annotations[config.aether.io/upstreams]");
            let costs = finding.message.contains("all services");
            assert!(finding.message.contains("more entries") || costs == (expected.is_none()));
        }
    }
}

#[test]
fn a_thousand_entries_are_read_and_not_one_more() {
    let entries =
        |count: usize| (0..count).map(|n| format!("shop/s{n}")).collect::<Vec<_>>().join(",");
    let projection = project(&[pod(Some(&entries(1_000)))]);
    assert_eq!(listed(&projection).unwrap().len(), 1_000);
    assert!(found(&projection, Reason::InvalidValue).is_empty());

    let projection = project(&[pod(Some(&entries(1_001)))]);
    assert_eq!(listed(&projection), None);
    let found = found(&projection, Reason::InvalidValue);
    assert_eq!((found.len(), found[0].severity), (1, Severity::Problem));
    assert_eq!(found[0].object.to_string(), "Pod shop/web");
    assert!(found[0].message.contains("1001 entries and at most 1000 are read"), "{}", found[0]);
}

#[test]
fn a_listed_name_that_nobody_bears_is_warned_of_until_somebody_does() {
    let all = [pod(Some("cart,pay/till,fresh"))];
    let projection = project(&all);
    let warned = found(&projection, Reason::Suspicious);
    assert_eq!(warned.len(), 1);
    assert_eq!(warned[0].severity, Severity::Warning);
    assert_eq!(warned[0].object.to_string(), "Pod shop/web");
    assert!(warned[0].message.contains("pay/till, shop/cart, shop/fresh"), "{}", warned[0]);

    let [pod] = all;
    let mut renamed = service("shop", "old", annotated("aether.io/service", "fresh"));
    merge(
        &mut renamed,
        json!({ "spec": { "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"] } }),
    );
    let projection = project(&[pod.clone(), service("shop", "cart", json!({})), renamed]);
    let warned = found(&projection, Reason::Suspicious);
    assert!(warned.len() == 1 && warned[0].message.contains("bears pay/till,"), "{warned:?}");
    // The name of a Service that bears another is none.
    let projection = project(&[pod, service("shop", "fresh", annotated("aether.io/service", "x"))]);
    assert!(found(&projection, Reason::Suspicious)[0].message.contains("shop/fresh"));
    // A pod that is not managed is nobody's concern.
    let mut out = self::pod(Some("Cart,ghost"));
    merge(&mut out, json!({ "metadata": { "labels": { "aether.io/managed": "false" } } }));
    assert!(project(&[out]).findings.is_empty());
}

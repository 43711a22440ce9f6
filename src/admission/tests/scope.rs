//! Which pods are in the mesh.

use serde_json::{Value, json};

use super::*;
use crate::admission::decide::Untouched;
use crate::admission::{Review, decide};

/// What becomes of a pod with this label value, by entry.
fn by_label(entry: Entry, labels: &Value) -> Decision {
    let mut pod = pod();
    pod["metadata"]["labels"] = labels.clone();
    decide_pod(&pod, "shop", entry, &settings()).unwrap()
}

#[test]
fn the_label_and_the_entry_say_who_is_in() {
    use Entry::{Namespace, Pod};
    let label = |value: &str| json!({ "aether.io/managed": value });
    let table = [
        (Pod, label("true"), None),
        (Pod, label("false"), Some(Untouched::OptedOut)),
        (Pod, label("True"), Some(Untouched::OptedOut)),
        (Pod, label(""), Some(Untouched::OptedOut)),
        (Pod, json!({}), Some(Untouched::NotLabelled)),
        (Pod, Value::Null, Some(Untouched::NotLabelled)),
        (Pod, json!({ "aether.io/managed-by": "true" }), Some(Untouched::NotLabelled)),
        (Namespace, label("true"), None),
        (Namespace, label("false"), Some(Untouched::OptedOut)),
        (Namespace, label("TRUE"), Some(Untouched::OptedOut)),
        (Namespace, label("yes"), Some(Untouched::OptedOut)),
        (Namespace, label(" true"), Some(Untouched::OptedOut)),
        (Namespace, label(""), Some(Untouched::OptedOut)),
        (Namespace, json!({}), None),
        (Namespace, json!({ "app": "web" }), None),
        (Namespace, json!({ "aether.io/managed": null }), Some(Untouched::OptedOut)),
        (Namespace, Value::Null, None),
    ];
    for (entry, labels, expected) in table {
        match (by_label(entry, &labels), expected) {
            (Decision::Untouched(why), Some(expected)) => assert_eq!(why, expected, "{labels}"),
            (Decision::Managed(managed), None) => {
                let has = labels.get("aether.io/managed").is_some_and(Value::is_string);
                assert_eq!(managed.add_label, !has, "{labels}");
            }
            (decision, expected) => panic!("{entry:?} {labels}: {decision:?}, not {expected:?}"),
        }
    }
}

#[test]
fn namespaces_never_touched_are_not_in_any_case() {
    let never = [
        "kube-system",
        "kube-public",
        "kube-node-lease",
        "aether-system",
        "spire-system",
        "spire-server",
        "spire-mgmt",
        "Kube-System",
        "SPIRE-SYSTEM",
    ];
    for namespace in never {
        for entry in Entry::ALL {
            let decision = decide_pod(&pod(), namespace, entry, &settings()).unwrap();
            assert_eq!(decision, Decision::Untouched(Untouched::NeverTouched), "{namespace}");
        }
    }
    let near = decide_pod(&pod(), "kube-system2", Entry::Pod, &settings()).unwrap();
    assert!(matches!(near, Decision::Managed(_)));
}

/// A pod that says another namespace than its request does not get around the rule, and one of a
/// controller that says none is still known.
#[test]
fn the_requests_namespace_counts_and_not_the_pods() {
    let says_shop = pod_with(json!({ "metadata": { "namespace": "shop" } }));
    let decision = decide_pod(&says_shop, "kube-system", Entry::Pod, &settings()).unwrap();
    assert_eq!(decision, Decision::Untouched(Untouched::NeverTouched));
    let says_system = pod_with(json!({ "metadata": { "namespace": "kube-system" } }));
    let decision = decide_pod(&says_system, "shop", Entry::Pod, &settings()).unwrap();
    assert!(matches!(decision, Decision::Managed(_)));
}

/// What would be denied in any other pod: two carriers and no group.
fn broken_carrier() -> Value {
    let carrier = |name: &str| json!({ "name": name, "csi": { "driver": "csi.aether.io" } });
    json!({ "spec": { "volumes": [carrier("a"), carrier("b")] } })
}

#[test]
fn a_mirror_pod_is_untouched_whatever_it_holds() {
    for value in ["", "false", "2c1f"] {
        let mut pod = pod_with(broken_carrier());
        pod["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": value });
        for entry in Entry::ALL {
            let decision = decide_pod(&pod, "shop", entry, &settings()).unwrap();
            assert_eq!(decision, Decision::Untouched(Untouched::Mirror), "{value:?}");
        }
    }
}

#[test]
fn who_is_not_in_is_not_denied_either() {
    let mut out = pod_with(broken_carrier());
    assert!(matches!(decided(&out, &settings()), Decision::Denied(_)));
    let never = decide_pod(&out, "kube-system", Entry::Pod, &settings()).unwrap();
    assert_eq!(never, Decision::Untouched(Untouched::NeverTouched));
    out["metadata"]["labels"]["aether.io/managed"] = json!("false");
    assert_eq!(decided(&out, &settings()), Decision::Untouched(Untouched::OptedOut));
    out["metadata"]["labels"] = json!({});
    assert_eq!(decided(&out, &settings()), Decision::Untouched(Untouched::NotLabelled));
    // The same pod, brought by its namespace, is in, and is denied.
    let decision = decide_pod(&out, "shop", Entry::Namespace, &settings()).unwrap();
    assert!(matches!(decision, Decision::Denied(_)));
}

#[test]
fn reviews_of_anything_but_the_creation_of_a_pod_change_nothing() {
    let review = |kind: &str, subresource: &str, operation: &str| Review {
        uid: "u".to_owned(),
        kind: kind.to_owned(),
        operation: operation.to_owned(),
        subresource: subresource.to_owned(),
        namespace: "shop".to_owned(),
        dry_run: false,
        object: Some(pod_with(broken_carrier())),
    };
    let table = [
        ("/v1 Pod", "", "UPDATE", Untouched::NotACreation),
        ("/v1 Pod", "", "DELETE", Untouched::NotACreation),
        ("/v1 Pod", "", "CONNECT", Untouched::NotACreation),
        ("/v1 Pod", "", "create", Untouched::NotACreation),
        ("/v1 Pod", "", "", Untouched::NotACreation),
        ("/v1 Pod", "ephemeralcontainers", "UPDATE", Untouched::Subresource),
        ("/v1 Pod", "binding", "CREATE", Untouched::Subresource),
        ("/v1 Service", "", "CREATE", Untouched::NotAPod),
        ("apps/v1 Deployment", "", "CREATE", Untouched::NotAPod),
        ("example.com/v1 Pod", "", "CREATE", Untouched::NotAPod),
        ("/ ", "", "", Untouched::NotAPod),
    ];
    for (kind, subresource, operation, expected) in table {
        let decision = decide(&review(kind, subresource, operation), Entry::Pod, &settings());
        assert_eq!(decision, Ok(Decision::Untouched(expected)), "{kind} {subresource} {operation}");
    }
    let mut deleted = review("/v1 Pod", "", "DELETE");
    deleted.object = None;
    let decision = decide(&deleted, Entry::Pod, &settings());
    assert_eq!(decision, Ok(Decision::Untouched(Untouched::NotACreation)));
}

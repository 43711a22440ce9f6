//! What went wrong with the webhooks of others, from their public reports, and how ours behaves.
//!
//! Those that need an API server are in the rig's tests; the registration's in `tests/webhook.rs`.

mod kinds;

use serde_json::{Value, json};

use super::*;

fn inits(pod: &Value) -> Vec<&str> {
    let list = pod["spec"]["initContainers"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|container| container["name"].as_str().unwrap()).collect()
}

/// <https://github.com/istio/istio/issues/54562>: init containers of another webhook vanished.
#[test]
fn init_containers_of_other_webhooks_are_not_removed() {
    let pod = pod_with(
        json!({ "spec": { "initContainers": [{ "name": "e-agent" }, { "name": "v-agent" }] } }),
    );
    let admitted = admitted(&pod, &settings());
    assert_eq!(inits(&admitted), ["aether-identity-ready", "e-agent", "v-agent"]);
}

/// <https://github.com/istio/istio/issues/38354>: an injector that comes later puts its own
/// container first, and nothing puts it right.
#[test]
fn an_init_container_put_in_front_later_is_put_behind() {
    let mut pod = admitted(&pod(), &settings());
    pod["spec"]["initContainers"].as_array_mut().unwrap().insert(0, json!({ "name": "late" }));
    assert_eq!(inits(&admitted(&pod, &settings())), ["aether-identity-ready", "late"]);
}

/// <https://github.com/aws/amazon-eks-pod-identity-webhook/issues/208>,
/// <https://github.com/Azure/azure-workload-identity/issues/1312>,
/// <https://github.com/GoogleCloudPlatform/berglas/issues/264>: `restartPolicy` of init containers
/// was dropped, being newer than the webhook's types, and sidecars blocked their pods.
#[test]
fn native_sidecars_stay_sidecars() {
    let sidecar =
        json!({ "name": "proxy", "image": "p", "restartPolicy": "Always", "startupProbe": {} });
    let pod = pod_with(json!({ "spec": { "initContainers": [sidecar] } }));
    let admitted = admitted(&pod, &settings());
    assert_eq!(admitted["spec"]["initContainers"][1], sidecar);
}

/// <https://github.com/kubernetes-sigs/windows-testing/pull/576>,
/// <https://github.com/gardener/apiserver-proxy/issues/26>: fields that the webhook's types did not
/// know were removed from every pod of the cluster.
#[test]
fn fields_from_the_future_are_kept() {
    let future = json!({
        "metadata": { "newMeta": { "a": null } },
        "spec": {
            "restartPolicyRules": [{ "action": "Restart" }],
            "containers": [{ "name": "web", "newField": [1, { "b": 2.50 }] }],
        },
        "newTop": true,
    });
    let mut pod = pod();
    for (key, value) in future.as_object().unwrap() {
        if let (Some(map), Some(new)) = (pod[key].as_object_mut(), value.as_object()) {
            map.extend(new.clone());
        } else {
            pod[key] = value.clone();
        }
    }
    let admitted = admitted(&pod, &settings());
    for pointer in ["/metadata/newMeta", "/spec/restartPolicyRules", "/spec/containers", "/newTop"]
    {
        assert_eq!(admitted.pointer(pointer), pod.pointer(pointer), "{pointer}");
    }
}

/// <https://github.com/kubernetes/kubernetes/issues/90623>,
/// <https://github.com/knative/pkg/issues/162>: an `add` below a map that is not there is refused,
/// and with it the pod.
#[test]
fn an_absent_map_is_made_with_what_goes_into_it() {
    let mut bare = json!({ "metadata": {}, "spec": { "containers": [] } });
    let admitted = admitted_by(&bare, Entry::Namespace, &settings());
    assert_eq!(admitted["metadata"]["labels"], json!({ "aether.io/managed": "true" }));
    assert_eq!(admitted["spec"]["dnsConfig"]["options"].as_array().unwrap().len(), 3);
    // Not even the metadata.
    bare.as_object_mut().unwrap().remove("metadata");
    let admitted = admitted_by(&bare, Entry::Namespace, &settings());
    assert_eq!(admitted["metadata"], json!({ "labels": { "aether.io/managed": "true" } }));
}

/// <https://github.com/kubernetes/kubernetes/issues/90623>, the other half: to be safe, some make
/// the map anew, and wipe what is in it.
#[test]
fn a_map_that_is_there_is_not_made_anew() {
    let pod = json!({
        "metadata": { "labels": { "app": "web", "a/b~c": "d" } },
        "spec": { "containers": [], "dnsConfig": { "searches": ["x"] }, "volumes": [{ "name": "v" }] },
    });
    let admitted = admitted_by(&pod, Entry::Namespace, &settings());
    assert_eq!(
        admitted["metadata"]["labels"],
        json!({ "app": "web", "a/b~c": "d", "aether.io/managed": "true" })
    );
    assert_eq!(admitted["spec"]["dnsConfig"]["searches"], json!(["x"]));
    assert_eq!(admitted["spec"]["volumes"][0], json!({ "name": "v" }));
}

/// <https://github.com/Azure/azure-workload-identity/issues/1744>: called again after another
/// webhook had changed the pod's name, it added its volume a second time.
#[test]
fn a_pod_renamed_by_another_webhook_gets_nothing_twice() {
    let mut pod = admitted(&pod(), &settings());
    pod["metadata"]["name"] = json!("renamed");
    pod["metadata"]["labels"]["added"] = json!("later");
    assert_eq!(operations(&pod, &settings()), json!([]));
}

/// <https://github.com/linkerd/linkerd2/issues/11254>: a volume of a common name collided with the
/// pod's own.
#[test]
fn a_volume_of_the_pods_own_is_no_reason_to_fail() {
    let own =
        json!([{ "name": "podinfo", "downwardAPI": {} }, { "name": "spiffe", "emptyDir": {} }]);
    let pod = pod_with(json!({ "spec": { "volumes": own } }));
    let admitted = admitted(&pod, &settings());
    let names: Vec<_> = admitted["spec"]["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["podinfo", "spiffe", "aether-identity-gate-spiffe"]);
}

/// <https://github.com/k8snetworkplumbingwg/network-resources-injector/pull/224>: several
/// instances of the webhook were called for one pod.
#[test]
fn two_instances_of_the_webhook_do_what_one_does() {
    let once = admitted(&pod(), &settings());
    let other =
        Settings { gate: Some(gate(|spec| spec.image = "other:3".to_owned())), ..settings() };
    assert_eq!(operations(&once, &other), json!([]));
}

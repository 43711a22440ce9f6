//! Reports about the resources, the security and the kinds of pods.

use serde_json::json;

use super::inits;
use crate::admission::decide::Untouched;
use crate::admission::tests::*;
use crate::admission::{Review, decide};

/// <https://github.com/linkerd/linkerd2/issues/10162>, <https://github.com/linkerd/linkerd2/issues/2750>:
/// the init container had no limits, and a ResourceQuota refused every pod.
#[test]
fn a_quota_on_limits_admits_the_gate() {
    let limits = json!({ "cpu": "100m", "memory": "128Mi" });
    let pod = pod_with(
        json!({ "spec": { "containers": [{ "name": "web", "resources": { "limits": limits } }] } }),
    );
    let admitted = admitted(&pod, &settings());
    assert_eq!(admitted["spec"]["initContainers"][0]["resources"]["limits"], limits);
}

/// <https://github.com/SparebankenVest/akv2k8s-website/issues/46>,
/// <https://github.com/kubernetes/kubernetes/issues/93282>: an init container without resources made
/// a Guaranteed pod Burstable.
#[test]
fn a_guaranteed_pod_stays_guaranteed() {
    let amounts = json!({ "cpu": "1", "memory": "1Gi" });
    let resources = json!({ "limits": amounts, "requests": amounts });
    let pod =
        pod_with(json!({ "spec": { "containers": [{ "name": "web", "resources": resources }] } }));
    let admitted = admitted(&pod, &settings());
    assert_eq!(admitted["spec"]["initContainers"][0]["resources"], resources);
}

/// <https://github.com/istio/istio/issues/58805>: a merge by position gave the container of the
/// user fields of the injected one.
#[test]
fn containers_of_the_pod_are_not_mixed_with_ours() {
    let own = json!({ "name": "aws-init", "image": "a", "resources": { "limits": { "cpu": "1" } }, "env": [{ "name": "X" }] });
    let pod = pod_with(json!({ "spec": { "initContainers": [own] } }));
    let admitted = admitted(&pod, &settings());
    assert_eq!(admitted["spec"]["initContainers"][1], own);
    assert_eq!(admitted["spec"]["initContainers"][0].get("env"), None);
}

/// <https://github.com/sigstore/model-validation-operator/issues/177>,
/// <https://github.com/linkerd/linkerd2/issues/4189>: the injected container broke the pod security
/// policy of its namespace.
#[test]
fn the_gate_meets_the_restricted_level() {
    let admitted = admitted(&pod(), &settings());
    let context = &admitted["spec"]["initContainers"][0]["securityContext"];
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["capabilities"], json!({ "drop": ["ALL"] }));
    assert_eq!(context["runAsNonRoot"], true);
    assert!(context["runAsUser"].as_i64().unwrap() > 0);
    assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
    // The pod's own context is the pod's.
    assert_eq!(admitted["spec"]["securityContext"], json!({}));
}

/// <https://github.com/vmware-tanzu/cert-injection-webhook/issues/6>: a Linux init container made
/// Windows pods fail at an image that they cannot pull.
#[test]
fn windows_pods_get_no_linux_container() {
    let pod = pod_with(json!({ "spec": { "nodeSelector": { "kubernetes.io/os": "windows" } } }));
    assert!(inits(&admitted(&pod, &settings())).is_empty());
}

/// <https://github.com/aws/containers-roadmap/issues/836>: only one of the two labels of a node's
/// operating system was looked at.
#[test]
fn both_labels_of_the_operating_system_count() {
    let pod =
        pod_with(json!({ "spec": { "nodeSelector": { "beta.kubernetes.io/os": "windows" } } }));
    assert!(inits(&admitted(&pod, &settings())).is_empty());
}

/// <https://github.com/istio/istio.io/issues/655>: a pod on its node's network was treated like
/// any other, and the node lost its routes.
#[test]
fn a_pod_on_its_nodes_network_is_left_alone_but_for_the_label() {
    let pod = pod_with(
        json!({ "spec": { "hostNetwork": true }, "metadata": { "labels": { "aether.io/managed": null } } }),
    );
    let decision = decide_pod(&pod, "shop", Entry::Namespace, &settings()).unwrap();
    let operations = serde_json::to_value(patch(&decision, &pod)).unwrap();
    assert_eq!(
        operations,
        json!([{ "op": "add", "path": "/metadata/labels/aether.io~1managed", "value": "true" }])
    );
}

/// <https://github.com/enix/kube-image-keeper/issues/560>,
/// <https://github.com/aws/amazon-vpc-resource-controller-k8s/issues/351>: mirror pods were changed
/// or denied, and static pods could no longer be seen.
#[test]
fn mirror_pods_are_neither_changed_nor_denied() {
    let mut pod = pod_with(
        json!({ "spec": { "volumes": [{ "name": "s", "csi": { "driver": "csi.aether.io" } }] } }),
    );
    pod["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": "0f3c" });
    assert_eq!(decided(&pod, &settings()), Decision::Untouched(Untouched::Mirror));
}

/// <https://github.com/dapr/dapr/pull/6938>: the namespace was read from the pod, which mostly has
/// none yet.
#[test]
fn the_namespace_of_the_request_is_the_pods() {
    let controllers = json!({ "metadata": { "generateName": "coredns-7d9f-", "labels": { "aether.io/managed": "true" } }, "spec": {} });
    let in_system = decide_pod(&controllers, "kube-system", Entry::Pod, &settings()).unwrap();
    assert_eq!(in_system, Decision::Untouched(Untouched::NeverTouched));
}

/// <https://github.com/hashicorp/vault-k8s/issues/500>, <https://github.com/hashicorp/vault-k8s/issues/546>,
/// <https://github.com/open-telemetry/opentelemetry-operator/issues/1514>,
/// <https://github.com/linkerd/linkerd2/issues/2889>: a pod that had escaped injection was injected
/// at an update, which Kubernetes refuses; its finalizer could never be removed.
#[test]
fn an_update_of_a_pod_that_has_no_gate_passes() {
    let review = Review {
        uid: "u".to_owned(),
        kind: "/v1 Pod".to_owned(),
        operation: "UPDATE".to_owned(),
        subresource: String::new(),
        namespace: "shop".to_owned(),
        dry_run: false,
        object: Some(pod()),
    };
    let decision = decide(&review, Entry::Pod, &settings()).unwrap();
    assert_eq!(decision, Decision::Untouched(Untouched::NotACreation));
    assert!(patch(&decision, &pod()).0.is_empty());
}

/// <https://github.com/hashicorp/consul-k8s/issues/715>,
/// <https://github.com/confidential-containers/cloud-api-adaptor/issues/305>,
/// <https://github.com/openappsec/attachment/issues/72>: the webhook stood in the way of the nodes'
/// own pods, or of its own.
#[test]
fn the_clusters_own_pods_and_ours_are_never_touched() {
    for namespace in ["kube-system", "kube-node-lease", "aether-system", "spire-server"] {
        for entry in Entry::ALL {
            let decision = decide_pod(&pod(), namespace, entry, &settings()).unwrap();
            assert_eq!(decision, Decision::Untouched(Untouched::NeverTouched), "{namespace}");
        }
    }
}

/// <https://github.com/linkerd/linkerd2/issues/7179>: a pod with `dnsPolicy: None` hung without a
/// word, as its nameserver did not know the mesh.
#[test]
fn a_pod_with_a_resolver_of_its_own_is_warned() {
    let pod = pod_with(
        json!({ "spec": { "dnsPolicy": "None", "dnsConfig": { "nameservers": ["8.8.8.8"] } } }),
    );
    let Decision::Managed(managed) = decided(&pod, &settings()) else { panic!() };
    let warnings = crate::admission::answer::warnings(&managed);
    assert!(warnings[0].contains("dnsPolicy None"), "{warnings:?}");
    assert_eq!(admitted(&pod, &settings())["spec"]["dnsConfig"], pod["spec"]["dnsConfig"]);
}

/// <https://github.com/salesforce/generic-sidecar-injector/issues/22>,
/// <https://github.com/kyverno/kyverno/issues/9863>: containers came back in another order.
#[test]
fn the_order_of_the_others_stays() {
    let names = ["z", "a", "m", "b"].map(|name| json!({ "name": name }));
    let pod = pod_with(
        json!({ "spec": { "containers": names, "initContainers": names, "volumes": names } }),
    );
    let admitted = admitted(&pod, &settings());
    assert_eq!(admitted["spec"]["containers"], json!(names));
    assert_eq!(inits(&admitted), ["aether-identity-ready", "z", "a", "m", "b"]);
    assert_eq!(admitted["spec"]["volumes"].as_array().unwrap()[..4], names);
}

/// <https://github.com/dapr/dapr/issues/10310>: the body was read without a limit; see the server's
/// tests. A pod as large as etcd takes, of the characters that are escaped, must still fit.
#[test]
fn the_largest_pod_of_a_cluster_fits_into_the_limit() {
    let pod = "<".repeat(1536 << 10);
    let escaped = pod.replace('<', "\\u003c");
    let limits = crate::admission::server::Limits::default();
    assert!(escaped.len() + 64 * 1024 < limits.body, "{}", escaped.len());
}

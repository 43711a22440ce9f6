//! QoS classes, quotas, LimitRanges and Pod Security: what the API server admits without the gate, it admits with it.

use std::time::Duration;

use it::eventually;
use serde_json::{Value, json};

use crate::stage::{Stage, inits, pod_with};

fn containers(resources: &[Value]) -> Value {
    let container = |(index, resources): (usize, &Value)| json!({ "name": format!("c{index}"), "image": "i", "resources": resources });
    json!({ "containers": resources.iter().enumerate().map(container).collect::<Vec<_>>() })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_qos_class_of_a_pod_stays() {
    let stage = Stage::start(&[]).await;
    stage.namespace("plain", json!({})).await;
    stage.namespace("managed", json!({ "aether.io/managed": "true" })).await;
    let amounts = json!({ "cpu": "1", "memory": "1Gi" });
    let full = json!({ "limits": amounts });
    let some = json!({ "requests": { "cpu": "100m" } });
    let table = [
        ("guaranteed", vec![full.clone()], "Guaranteed"),
        (
            "guaranteed-two",
            vec![full.clone(), json!({ "limits": { "cpu": "2", "memory": "2Gi" } })],
            "Guaranteed",
        ),
        ("burstable", vec![some.clone()], "Burstable"),
        ("burstable-memory", vec![json!({ "limits": { "memory": "1Gi" } })], "Burstable"),
        ("burstable-second", vec![json!({}), some.clone()], "Burstable"),
        ("burstable-first", vec![full, json!({})], "Burstable"),
        ("best-effort", vec![json!({}), json!({})], "BestEffort"),
    ];
    for (name, resources, class) in table {
        let asked = pod_with(name, json!({}), &containers(&resources));
        let plain = stage.create("plain", &asked).await.unwrap();
        let managed = stage.create("managed", &asked).await.unwrap();
        assert_eq!(plain["status"]["qosClass"], class, "{name}");
        assert_eq!(managed["status"]["qosClass"], class, "{name}");
        assert_eq!(inits(&managed), ["aether-identity-ready"], "{name}");
    }
}

/// Makes a namespace with this object in it, and waits until the API server goes by it.
async fn limited(stage: &Stage, namespace: &str, object: &Value, refused: &Value) {
    stage.namespace(namespace, json!({ "aether.io/managed": "true" })).await;
    stage
        .cluster
        .kubectl(&["apply", "-n", namespace, "-f", "-"], &object.to_string())
        .await
        .unwrap();
    let ask = || async {
        // Opted out, so that it is the limit that refuses and not we.
        let name = format!("refused-{}", fastrand::u32(..));
        let asked = pod_with(&name, json!({ "aether.io/managed": "no" }), refused);
        let refused = stage.create(namespace, &asked).await.is_err();
        anyhow::ensure!(refused, "{namespace} is not limited yet");
        Ok(())
    };
    eventually("the limit", Duration::from_mins(1), ask).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_and_limit_ranges_admit_the_gate_with_its_pod() {
    let stage = Stage::start(&[]).await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "q" },
        "spec": { "hard": { "limits.cpu": "2", "limits.memory": "2Gi", "requests.cpu": "1" } },
    });
    let none = containers(&[json!({})]);
    limited(&stage, "quota", &quota, &none).await;
    let amounts = json!({ "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "500m", "memory": "64Mi" } });
    // Two of them use the quota up: the gate adds nothing.
    for name in ["one", "two"] {
        let stored = stage
            .create(
                "quota",
                &pod_with(name, json!({}), &containers(std::slice::from_ref(&amounts))),
            )
            .await
            .unwrap();
        assert_eq!(
            stored["spec"]["initContainers"][0]["resources"],
            stored["spec"]["containers"][0]["resources"]
        );
    }
    assert!(
        stage
            .create(
                "quota",
                &pod_with("three", json!({}), &containers(std::slice::from_ref(&amounts)))
            )
            .await
            .is_err()
    );

    let range = |item: Value| json!({ "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "r" }, "spec": { "limits": [item] } });
    let cpu = |request: &str, limit: &str| {
        containers(&[json!({ "requests": { "cpu": request }, "limits": { "cpu": limit } })])
    };
    let table = [
        (
            "least",
            json!({ "type": "Container", "min": { "cpu": "200m" } }),
            cpu("100m", "1"),
            cpu("200m", "1"),
        ),
        (
            "most",
            json!({ "type": "Container", "max": { "cpu": "500m" } }),
            cpu("100m", "600m"),
            cpu("100m", "500m"),
        ),
        (
            "ratio",
            json!({ "type": "Container", "maxLimitRequestRatio": { "cpu": "2" } }),
            cpu("100m", "300m"),
            cpu("100m", "200m"),
        ),
        (
            "pod",
            json!({ "type": "Pod", "max": { "cpu": "500m" } }),
            cpu("100m", "600m"),
            cpu("100m", "500m"),
        ),
    ];
    for (namespace, item, refused, good) in table {
        limited(&stage, namespace, &range(item), &refused).await;
        let stored = stage.create(namespace, &pod_with("good", json!({}), &good)).await;
        assert_eq!(inits(&stored.unwrap()), ["aether-identity-ready"], "{namespace}");
    }

    // Defaults come before us, so the gate has them too, and a second review changes nothing.
    let defaults = json!({ "type": "Container", "default": { "cpu": "300m", "memory": "64Mi" }, "max": { "cpu": "400m" } });
    limited(&stage, "defaults", &range(defaults), &cpu("100m", "500m")).await;
    let stored = stage.create("defaults", &pod_with("good", json!({}), &none)).await.unwrap();
    assert_eq!(
        stored["spec"]["initContainers"][0]["resources"]["limits"],
        json!({ "cpu": "300m", "memory": "64Mi" })
    );
    let calls = crate::audit::ours(&stage.audit.created("defaults", "good").await);
    assert_eq!(calls.iter().filter(|call| call.mutated).count(), 1, "{calls:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_restricted_level_of_pod_security_admits_the_gate() {
    let stage = Stage::start(&[]).await;
    let labels =
        json!({ "aether.io/managed": "true", "pod-security.kubernetes.io/enforce": "restricted" });
    stage.namespace("strict", labels).await;
    let restricted = json!({
        "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
        "containers": [{
            "name": "web", "image": "w",
            "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
        }],
    });
    let stored = stage.create("strict", &pod_with("good", json!({}), &restricted)).await.unwrap();
    assert_eq!(inits(&stored), ["aether-identity-ready"]);
    // It is this level that speaks: the pod without its own contexts is refused, and not for our container.
    let refused = stage
        .create("strict", &pod_with("bad", json!({}), &json!({})))
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("PodSecurity") && refused.contains("\"web\""), "{refused}");
    assert!(!refused.contains("aether-identity-ready"), "{refused}");
}

//! Single decisions, from objects to plan: who gets a Service, and what it says.

use serde_json::json;

use super::server::{pod, service};
use super::words::{HOUR, MINUTE, SECOND, key, plane};
use crate::model::{Reason, ServiceKey};

#[tokio::test]
async fn a_workload_gets_a_service_and_it_is_as_the_issue_says() {
    let mut plane = plane();
    let says = json!({ "endpoint.aether.io/port": "9000", "endpoint.aether.io/protocol": "grpc" });
    plane.pod("web-0", "web", &says);
    plane.pass(SECOND).await;
    let service = plane.service("web").unwrap();
    assert_eq!(service["metadata"]["labels"], json!({ "aether.io/mesh-service": "true" }));
    let annotations = json!({
        "aether.io/service": "web",
        "aether.io/port": "9000",
        "aether.io/app-protocol": "grpc",
        "aether.io/generated-for": "shop/web",
    });
    assert_eq!(service["metadata"]["annotations"], annotations);
    let spec = &service["spec"];
    assert_eq!(
        (&spec["type"], &spec["ipFamilyPolicy"]),
        (&json!("ClusterIP"), &json!("PreferDualStack"))
    );
    assert_eq!(spec["ports"], json!([{ "name": "mesh", "port": 18081, "protocol": "TCP" }]));
    assert!(spec.get("selector").is_none());
}

#[tokio::test]
async fn who_gets_none() {
    let mut plane = plane();
    plane.pod("a", "default", &json!({}));
    plane.pod("b", "default", &json!({ "endpoint.aether.io/port": "no" }));
    plane.fake.with(|state| {
        let mut host = pod("host", &json!({}));
        host["spec"]["hostNetwork"] = true.into();
        state.server.put_pod(&key("c"), host);
        let mut pending = pod("pending", &json!({}));
        pending["status"]["phase"] = "Pending".into();
        state.server.put_pod(&key("d"), pending);
        let mut stranger = pod("stranger", &json!({}));
        stranger["metadata"]["labels"] = json!({});
        state.server.put_pod(&key("e"), stranger);
        let system = ServiceKey::new("kube-system", "f");
        state.server.put_pod(&system, pod("web", &json!({})));
        let excluded = ServiceKey::new("spire-system", "g");
        state.server.put_pod(&excluded, pod("web", &json!({})));
    });
    plane.pass(SECOND).await;
    assert_eq!(plane.writes(), 0);
    plane.pod("b", "default", &json!({ "endpoint.aether.io/port": "9000" }));
    plane.pass(MINUTE).await;
    assert!(plane.service("default").is_some(), "one that says where it serves");
}

#[tokio::test]
async fn a_users_claim_comes_first_and_takes_the_place_of_ours() {
    let mut plane = plane();
    plane.pod("web-0", "web", &json!({}));
    plane.fake.with(|state| {
        let claims = json!({ "aether.io/service": "web" });
        state.server.user_puts(&key("front"), service(&key("front"), true, &claims));
    });
    plane.pass(HOUR).await;
    assert!(plane.service("web").is_none(), "another Service claims the name");
    plane.fake.with(|state| state.server.removes(&key("front")));
    plane.pass(SECOND).await;
    assert!(plane.service("web").is_some());
    plane.fake.with(|state| {
        let claims = json!({ "aether.io/service": "web" });
        state.server.user_puts(&key("front"), service(&key("front"), true, &claims));
    });
    plane.pass(MINUTE - SECOND).await;
    assert!(plane.service("web").is_some(), "it might be a mistake");
    plane.pass(SECOND * 2).await;
    assert!(plane.service("web").is_none());
}

#[tokio::test]
async fn a_name_that_is_taken_is_left_alone_and_reported_until_it_is_free() {
    let mut plane = plane();
    plane.pod("web-0", "web", &json!({}));
    plane.fake.with(|state| {
        // With all marks but the one that cannot be copied.
        let marks = json!({ "aether.io/generated-for": "shop/web" });
        state.server.user_puts(&key("web"), service(&key("web"), false, &marks));
    });
    let found = plane.found().await;
    let told = "ServiceAccount shop/web, metadata.name: the Service shop/web exists already";
    assert!(
        found.iter().any(|(reason, text)| *reason == Reason::NotGenerated && text.contains(told)),
        "{found:?}"
    );
    plane.fake.with(|state| state.server.removes(&key("web")));
    plane.pass(MINUTE * 2).await;
    assert!(plane.service("web").is_some());
    assert_eq!(plane.found().await, []);
}

#[tokio::test]
async fn a_name_that_is_no_label_is_reported() {
    let mut plane = plane();
    plane.pod("a", "we.b", &json!({}));
    plane.pod("b", "1st", &json!({}));
    let found = plane.found().await;
    let told = "\"we.b\" is no DNS label";
    assert!(found.iter().any(|(_, text)| text.contains(told)), "{found:?}");
    // The API server has an opinion too.
    assert!(found.iter().any(|(_, text)| text.contains("must start with a letter")), "{found:?}");
    assert_eq!((found.len(), plane.writes()), (2, 0));
}

#[tokio::test]
async fn the_oldest_pods_word_counts_and_the_others_are_reported() {
    let mut plane = plane();
    plane.pod("z", "web", &json!({ "endpoint.aether.io/port": "9000" }));
    plane.pod("a", "web", &json!({ "endpoint.aether.io/port": "9001" }));
    plane.pod("b", "web", &json!({}));
    let found = plane.found().await;
    let told = "the oldest, z, has \"9000\", which counts, and a has \"9001\"";
    assert!(found.len() == 1 && found[0].1.contains(told), "{found:?}");
    assert_eq!(plane.service("web").unwrap()["metadata"]["annotations"]["aether.io/port"], "9000");
    let before = plane.service("web").unwrap();
    plane.no_pod("z");
    let found = plane.found().await;
    assert!(found[0].1.contains("the oldest, a, has \"9001\", which counts, and b has none"));
    let after = plane.service("web").unwrap();
    assert_eq!(after["metadata"]["annotations"]["aether.io/port"], "9001");
    assert_eq!(after["spec"], before["spec"], "the ClusterIP stays");
    plane.no_pod("a");
    assert_eq!(plane.found().await, []);
    // Words that mean the same are no conflict.
    plane.pod("b", "web", &json!({ "endpoint.aether.io/protocol": "h2" }));
    plane.pod("c", "web", &json!({ "endpoint.aether.io/protocol": "gRPC" }));
    assert_eq!(plane.found().await, []);
}

#[tokio::test]
async fn one_that_was_made_headless_is_made_anew() {
    let mut plane = plane();
    plane.pod("web-0", "web", &json!({}));
    plane.pass(MINUTE).await;
    plane.fake.with(|state| {
        state
            .server
            .user_edits(&key("web"), |service| service["spec"]["clusterIP"] = "None".into());
    });
    plane.pass(MINUTE).await;
    assert_ne!(plane.service("web").unwrap()["spec"]["clusterIP"], "None");
}

#[tokio::test]
async fn one_that_is_being_deleted_is_left_to_it() {
    let mut plane = plane();
    plane.pod("web-0", "web", &json!({}));
    plane.pass(MINUTE).await;
    let writes = plane.writes();
    plane.fake.with(|state| {
        state.server.user_edits(&key("web"), |service| {
            service["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z".into();
            service["spec"]["ports"] = json!([{ "port": 80 }]);
        });
    });
    plane.pass(HOUR * 48).await;
    assert_eq!(plane.writes(), writes);
}

#[tokio::test]
async fn who_undoes_our_work_again_and_again_is_not_fought() {
    let mut plane = plane();
    plane.pod("web-0", "web", &json!({}));
    plane.pass(MINUTE).await;
    let writes = plane.writes();
    for _ in 0..3600 {
        plane.fake.with(|state| {
            state.server.user_edits(&key("web"), |service| {
                service["metadata"]["annotations"]["aether.io/port"] = "1".into();
            });
        });
        plane.pass(SECOND).await;
    }
    let fought = plane.writes() - writes;
    assert!((15..40).contains(&fought), "{fought} writes in an hour");
}

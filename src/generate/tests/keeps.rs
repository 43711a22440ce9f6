//! How long a Service is kept that nobody needs.

use serde_json::json;

use super::server::pod;
use super::words::{HOUR, MINUTE, SECOND, key, plane};
use crate::generate::{Operation, Why};

#[tokio::test]
async fn a_scale_to_zero_keeps_the_service_for_a_day() {
    let mut plane = plane();
    plane.account("web", true);
    plane.pod("web-0", "web", &json!({ "endpoint.aether.io/port": "9000" }));
    plane.pass(MINUTE).await;
    let before = plane.service("web").unwrap();
    plane.no_pod("web-0");
    plane.pass(HOUR * 24 - SECOND).await;
    assert_eq!(plane.service("web").as_ref(), Some(&before), "nothing of it changes");
    plane.pod("web-1", "web", &json!({ "endpoint.aether.io/port": "9000" }));
    plane.pass(SECOND).await;
    plane.no_pod("web-1");
    plane.pass(HOUR * 24 - SECOND).await;
    assert_eq!(plane.service("web").as_ref(), Some(&before), "the day begins anew");
    plane.pass(SECOND).await;
    assert_eq!(plane.service("web"), None);
}

#[tokio::test]
async fn without_its_account_it_goes_after_a_minute() {
    let mut plane = plane();
    plane.account("web", true);
    plane.pod("web-0", "web", &json!({}));
    plane.pass(MINUTE).await;
    plane.account("web", false);
    plane.pass(HOUR).await;
    assert!(plane.service("web").is_some(), "pods run without their account");
    plane.no_pod("web-0");
    plane.pass(MINUTE - SECOND).await;
    assert!(plane.service("web").is_some());
    plane.pass(SECOND).await;
    assert!(plane.service("web").is_none());
}

#[tokio::test]
async fn a_new_leader_counts_from_its_own_beginning() {
    let mut plane = plane();
    plane.account("web", true);
    plane.pod("web-0", "web", &json!({}));
    plane.pass(MINUTE).await;
    plane.no_pod("web-0");
    plane.pass(HOUR * 23).await;
    plane.new_leader();
    plane.pass(HOUR * 23).await;
    assert!(plane.service("web").is_some());
    plane.pass(HOUR).await;
    assert!(plane.service("web").is_none());
}

#[tokio::test]
async fn pods_and_accounts_that_the_watch_has_not_shown_yet_save_their_service() {
    let mut plane = plane();
    plane.pod("web-0", "web", &json!({}));
    plane.pass(MINUTE).await;
    plane.no_pod("web-0");
    plane.hears(usize::MAX);
    plane.work().await;
    plane.now = plane.now + MINUTE * 2;
    // It is there, but the watch lags behind.
    plane.fake.with(|state| {
        let mut pending = pod("web", &json!({}));
        pending["status"]["phase"] = "Pending".into();
        state.server.put_pod(&key("web-1"), pending);
    });
    assert_eq!(plane.plan().operations, [Operation::Delete(key("web"), Why::Gone)]);
    plane.work().await;
    assert!(plane.service("web").is_some());
    // The same with the account.
    plane.no_pod("web-1");
    plane.hears(usize::MAX);
    plane.work().await;
    plane.now = plane.now + MINUTE * 3;
    plane.account("web", true);
    assert_eq!(plane.plan().operations, [Operation::Delete(key("web"), Why::Gone)]);
    plane.work().await;
    assert!(plane.service("web").is_some());
    plane.account("web", false);
    plane.pass(MINUTE * 3).await;
    assert!(plane.service("web").is_none());
}

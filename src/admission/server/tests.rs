#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod https;
mod limits;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::admission::metrics::Metrics;
use crate::admission::settings::GateSpec;
use crate::admission::{Entry, Gate, Settings};

fn settings() -> Settings {
    let spec = GateSpec { image: "aether:1".to_owned(), ..GateSpec::default() };
    Settings { gate: Some(Gate::new(spec).unwrap()), ..Settings::default() }
}

fn webhook(limits: Limits) -> (Arc<Webhook>, Metrics) {
    let metrics = Metrics::default();
    (Arc::new(Webhook::new(settings(), metrics.clone(), limits)), metrics)
}

/// The metrics as they are scraped.
fn scrape(metrics: &Metrics) -> String {
    let mut registry = Registry::with_prefix("aether");
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    text
}

fn review(labels: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "the-uid",
            "kind": { "group": "", "version": "v1", "kind": "Pod" },
            "operation": "CREATE",
            "namespace": "shop",
            "object": { "metadata": { "name": "web", "labels": labels }, "spec": { "containers": [{ "name": "web" }] } },
        },
    })
}

fn managed() -> Value {
    review(&json!({ "aether.io/managed": "true" }))
}

fn post(path: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    request.body(body.into()).unwrap()
}

/// Status and body of an answer.
async fn ask(webhook: &Arc<Webhook>, request: Request<Body>) -> (StatusCode, String) {
    let response = webhook.router().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn answer(webhook: &Arc<Webhook>, path: &str, review: &Value) -> Value {
    let (status, body) = ask(webhook, post(path, review.to_string())).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn the_path_says_which_label_brought_the_pod() {
    let (webhook, metrics) = webhook(Limits::default());
    let unlabelled = review(&Value::Null);
    let by_pod = answer(&webhook, "/mutate", &unlabelled).await;
    assert_eq!(
        by_pod["response"],
        json!({ "uid": "the-uid", "allowed": true, "auditAnnotations": { "left": "not_labelled" } })
    );
    let by_namespace = answer(&webhook, "/mutate/namespace?timeout=5s", &unlabelled).await;
    assert_eq!(by_namespace["response"]["uid"], "the-uid");
    assert_eq!(by_namespace["response"]["patchType"], "JSONPatch");
    let text = scrape(&metrics);
    for line in [
        "aether_webhook_reviews_total{entry=\"pod\",outcome=\"untouched\",reason=\"not_labelled\"} 1",
        "aether_webhook_reviews_total{entry=\"namespace\",outcome=\"patched\",reason=\"managed\"} 1",
        "aether_webhook_identity_gates_total{result=\"added\",reason=\"managed\"} 1",
        "aether_webhook_duration_seconds_count 2",
        "aether_webhook_in_flight 0",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn what_is_no_question_gets_the_status_that_says_so() {
    let (webhook, metrics) = webhook(Limits::default());
    let review = || Body::from(managed().to_string());
    let typed = |kind: &str| {
        Request::post("/mutate").header(header::CONTENT_TYPE, kind).body(review()).unwrap()
    };
    let v1beta1 = managed().to_string().replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
    let table: Vec<(Request<Body>, u16, &str)> = vec![
        (Request::get("/mutate").body(Body::empty()).unwrap(), 405, "method"),
        (Request::put("/mutate").body(review()).unwrap(), 405, "method"),
        (Request::delete("/mutate/namespace").body(Body::empty()).unwrap(), 405, "method"),
        (post("/", review()), 404, "path"),
        (post("/mutate/", review()), 404, "path"),
        (post("/mutate/other", review()), 404, "path"),
        (Request::post("/mutate").body(review()).unwrap(), 415, "content_type"),
        (typed("application/yaml"), 415, "content_type"),
        (typed("application/vnd.kubernetes.protobuf"), 415, "content_type"),
        (typed("text/application/json"), 415, "content_type"),
        (post("/mutate", ""), 400, "unreadable"),
        (post("/mutate", "{"), 400, "unreadable"),
        (post("/mutate", "null"), 400, "unreadable"),
        (post("/mutate", v1beta1), 400, "unreadable"),
        (post("/mutate", managed().to_string().replace("\"the-uid\"", "null")), 400, "unreadable"),
        (
            post("/mutate", managed().to_string().replace("[{\"name\":\"web\"}]", "7")),
            400,
            "unreadable",
        ),
    ];
    let count = table.len();
    for (request, expected, reason) in table {
        let shown = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
        let (status, body) = ask(&webhook, request).await;
        assert_eq!(status.as_u16(), expected, "{shown}: {body}");
        assert!(!body.is_empty(), "{shown}");
        let line = format!("aether_webhook_failures_total{{reason=\"{reason}\"}}");
        assert!(scrape(&metrics).contains(&line), "{shown}: {line}");
    }
    let failures: usize = scrape(&metrics)
        .lines()
        .filter_map(|line| {
            line.strip_prefix("aether_webhook_failures_total{")?
                .rsplit_once(' ')?
                .1
                .parse::<usize>()
                .ok()
        })
        .sum();
    assert_eq!(failures, count);
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        assert_eq!(ask(&webhook, typed(kind)).await.0, StatusCode::OK, "{kind}");
    }
}

#[tokio::test]
async fn the_uid_is_echoed_where_there_is_one_whatever_goes_wrong() {
    let (webhook, _) = webhook(Limits::default());
    let text = managed().to_string();
    let broken = [
        text.replace("admission.k8s.io/v1", "admission.k8s.io/v2"),
        text.replace("\"CREATE\"", "7"),
        text.replace("[{\"name\":\"web\"}]", "\"web\""),
        text.replace("{\"aether.io/managed\":\"true\"}", "[]"),
    ];
    for body in broken {
        assert_ne!(body, text);
        let (status, answer) = ask(&webhook, post("/mutate", body.clone())).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["response"]["uid"], "the-uid", "{body}");
        assert_eq!(answer["response"]["allowed"], false);
        assert_eq!(answer["response"]["status"]["code"], 400);
        assert!(answer["response"]["status"]["message"].as_str().unwrap().len() > 10, "{answer}");
    }
    // Another kind or operation is a mistake of the registration, and no reason to fail a request.
    for (from, to) in
        [("\"Pod\"", "\"Service\""), ("\"CREATE\"", "\"UPDATE\""), ("\"CREATE\"", "\"\"")]
    {
        let (status, answer) = ask(&webhook, post("/mutate", text.replace(from, to))).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["response"]["allowed"]), (StatusCode::OK, &json!(true)));
        assert_eq!(answer["response"]["uid"], "the-uid");
        assert_eq!(answer["response"].get("patch"), None);
    }
}

/// A panic costs its own review the failure policy, and nobody else anything.
#[tokio::test]
async fn a_panic_is_an_internal_error_of_one_review() {
    let metrics = Metrics::default();
    let respond = |review: &crate::admission::Review, entry: Entry, settings: &Settings| {
        assert!(review.namespace != "panics", "on purpose");
        crate::admission::answer::Answer::to(review, entry, settings)
    };
    let webhook =
        Webhook::responding(settings(), metrics.clone(), Limits::default(), Box::new(respond));
    let webhook = Arc::new(webhook);
    let text = managed().to_string();
    let (status, answer) =
        ask(&webhook, post("/mutate", text.replace("\"shop\"", "\"panics\""))).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["response"]["uid"], "the-uid");
    assert_eq!(answer["response"]["status"]["code"], 500);
    assert!(scrape(&metrics).contains("failures_total{reason=\"internal\"} 1"));
    assert!(scrape(&metrics).contains("aether_webhook_in_flight 0"));
    assert_eq!(ask(&webhook, post("/mutate", text)).await.0, StatusCode::OK);
}

/// Whatever pods say, the labels of the metrics are from fixed sets.
#[tokio::test]
async fn no_value_of_a_pod_becomes_a_label() {
    let (webhook, metrics) = webhook(Limits::default());
    for index in 0..200 {
        let mut review = review(&json!({ "aether.io/managed": format!("value-{index}") }));
        review["request"]["namespace"] = json!(format!("namespace-{index}"));
        review["request"]["operation"] =
            json!(if index % 2 == 0 { "CREATE".to_owned() } else { format!("OP-{index}") });
        answer(&webhook, "/mutate", &review).await;
    }
    let text = scrape(&metrics);
    let series =
        text.lines().filter(|line| line.starts_with("aether_webhook_reviews_total{")).count();
    assert_eq!(series, 2, "{text}");
    assert!(
        !text.contains("value-") && !text.contains("namespace-1") && !text.contains("OP-"),
        "{text}"
    );
}

//! The paths that are answered.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::metrics::{self, Metrics};
use super::pages::Pages;
use crate::health::{Health, Report};

#[derive(Debug)]
struct Shared {
    health: Health,
    metrics: Metrics,
    paths: String,
}

pub(super) fn router(health: Health, metrics: Metrics, pages: Pages) -> Router {
    let paths = format!("/livez\n/readyz\n/readyz/<part>\n/metrics\n{}", pages.index());
    Router::new()
        .route("/", get(index))
        .route("/livez", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .route("/readyz/{part}", get(part_ready))
        .route("/metrics", get(all_metrics))
        .fallback(nothing)
        .with_state(Arc::new(Shared { health, metrics, paths }))
        .merge(pages.router())
}

async fn index(State(shared): State<Arc<Shared>>) -> String {
    shared.paths.clone()
}

async fn nothing() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "nothing is here: / lists what there is\n")
}

fn verdict(report: &Report) -> Response {
    let status = if report.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, report.to_string()).into_response()
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    verdict(&shared.health.report())
}

async fn part_ready(State(shared): State<Arc<Shared>>, Path(part): Path<String>) -> Response {
    match shared.health.report_of(&part) {
        Some(report) => verdict(&report),
        None => (StatusCode::NOT_FOUND, "no such part: /readyz lists them\n").into_response(),
    }
}

async fn all_metrics(State(shared): State<Arc<Shared>>) -> Response {
    match shared.metrics.encode() {
        Ok(text) => {
            let content_type = HeaderValue::from_static(metrics::CONTENT_TYPE);
            ([(CONTENT_TYPE, content_type)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

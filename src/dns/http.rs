//! Metrics and health over HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::engine::Engine;

/// Serves `/metrics`, `/healthz` (the process lives) and `/readyz` (it has a table) until the
/// process ends; returns the bound address and what is to be run.
///
/// # Errors
/// Where the address cannot be bound.
pub async fn serve(
    address: SocketAddr,
    engine: Arc<Engine>,
) -> io::Result<(SocketAddr, impl Future<Output = io::Result<()>>)> {
    let listener = TcpListener::bind(address).await?;
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(engine);
    Ok((listener.local_addr()?, async move { axum::serve(listener, routes).await }))
}

async fn metrics(State(engine): State<Arc<Engine>>) -> Response {
    const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match engine.metrics().text() {
        Ok(text) => ([(header::CONTENT_TYPE, TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn ready(State(engine): State<Arc<Engine>>) -> (StatusCode, &'static str) {
    if engine.has_table() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "no table of mesh names yet\n")
    }
}

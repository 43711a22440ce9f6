//! The datastore below the API server: paused, and compacted.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Cluster;

impl Cluster {
    /// Stops etcd where it stands (SIGSTOP): the API server answers from its caches or not at all.
    pub fn pause_etcd(&self) -> Result<()> {
        self.etcd().pause()
    }

    /// Lets it go on.
    pub fn resume_etcd(&self) -> Result<()> {
        self.etcd().resume()
    }

    /// Forgets all history of the datastore. The API server's own memory of it, from which it answers watches and
    /// lists in pages, is not changed by that: see [`Cluster::expire`].
    pub async fn compact(&self) -> Result<()> {
        let revision = self.revision().await?;
        let order = json!({"revision": revision, "physical": true});
        self.ask_etcd("/v3/kv/compaction", &order).await.map(drop)
    }

    /// Makes sure that nobody can go on from before: a watch from an older resourceVersion and the next page of an older
    /// list are answered by 410. Compacts, and restarts the API server, whose memory begins anew.
    pub async fn expire(&self) -> Result<()> {
        self.compact().await?;
        self.stop_api_server()?;
        self.start_api_server().await
    }

    /// The datastore's present revision.
    async fn revision(&self) -> Result<String> {
        // The key "/", in base64; what counts is the header.
        let answer = self.ask_etcd("/v3/kv/range", &json!({"key": "Lw=="})).await?;
        let revision = answer.pointer("/header/revision").and_then(Value::as_str);
        Ok(revision.context("etcd answered without a revision")?.to_owned())
    }

    async fn ask_etcd(&self, path: &str, body: &Value) -> Result<Value> {
        let socket = self.folder.path().join("etcd.sock");
        let answer = timeout(Duration::from_secs(20), post(&socket, path, body)).await;
        answer
            .context("not within 20 s")
            .flatten()
            .with_context(|| format!("POST {path} to etcd on {}", socket.display()))
    }
}

/// Posts JSON to a server on a Unix socket and reads the JSON that it answers.
async fn post(socket: &Path, path: &str, body: &Value) -> Result<Value> {
    let stream = UnixStream::connect(socket).await?;
    let (mut send, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let _connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
    let request = http::Request::post(path).header("host", "etcd");
    let body = Full::<Bytes>::from(serde_json::to_vec(body)?);
    let answer = send.send_request(request.body(body)?).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(serde_json::from_slice(&body)?)
}

//! Bytes as the requests of an xDS stream, to a server on a Unix socket of this process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aether::xds::{
    Entry, Group, Kind, Layer, Listener, NodeSpec, Resource, Server, Snapshot, Store, Table,
};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;

use crate::places;

/// The node that the server knows.
pub(super) const NODE: &str = "pod/shop/cart";
/// The threads of the server, by which its panics are told from those of others.
pub(super) const THREAD: &str = "fuzzed";
/// How long an answer may take: its body ends soon after that of the request.
const LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of an answer. All that is served is a few hundred, and as many names as are asked for.
const LONGEST: usize = 32 << 20;

/// The server, and a connection to it.
#[derive(Debug)]
pub struct Requests {
    runtime: Runtime,
    socket: PathBuf,
    send: Option<SendRequest<Full<Bytes>>>,
    _folder: TempDir,
}

impl Requests {
    /// Starts the server.
    pub fn start() -> Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).thread_name(THREAD).enable_all().build()?;
        let folder = places::folder()?;
        let socket = folder.path().join("xds.sock");
        let store = Store::default();
        store.publish(snapshot());
        let admit = |id: &str| if id == NODE { Ok(()) } else { Err(format!("say {NODE}")) };
        let server = Server::new(&store, "fuzzed", Arc::new(admit));
        let listener = runtime.block_on(Listener::unix(&socket, 0o600))?;
        runtime.spawn(server.run(vec![listener], std::future::pending()));
        Ok(Self { runtime, socket, send: None, _folder: folder })
    }

    /// Sends what the bytes say as one stream, and reads the answer to its end; how many bytes it has.
    ///
    /// The lowest bit of the first byte is the protocol, the second whether the rest is the body as it stands; else it
    /// is messages, each after its length in two bytes. It is an error when the answer does not end, or is too long.
    pub fn send(&mut self, input: &[u8]) -> Result<usize> {
        let Some((first, rest)) = input.split_first() else { return Ok(0) };
        let method = if first & 1 == 0 { "Delta" } else { "Stream" };
        let body = if first & 2 == 0 { framed(rest) } else { rest.to_vec() };
        let uri = format!(
            "http://fuzzed/envoy.service.discovery.v3.AggregatedDiscoveryService/{method}AggregatedResources"
        );
        let request = http::Request::post(uri).header("content-type", "application/grpc");
        let request = request.body(Full::new(Bytes::from(body)))?;
        let Self { runtime, socket, send, .. } = self;
        runtime.block_on(async {
            let answer = tokio::time::timeout(LIMIT, exchange(socket, send, request));
            answer.await.context("the stream does not end")?
        })
    }
}

/// A length and as many bytes, again and again, as messages of gRPC. Of the last one there may be less.
fn framed(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (message, after) = after.split_at(length);
        body.push(0);
        body.extend(u32::try_from(length).unwrap_or_default().to_be_bytes());
        body.extend(message);
        rest = after;
    }
    body
}

async fn exchange(
    socket: &Path,
    send: &mut Option<SendRequest<Full<Bytes>>>,
    request: http::Request<Full<Bytes>>,
) -> Result<usize> {
    if send.as_ref().is_none_or(SendRequest::is_closed) {
        let stream = TokioIo::new(UnixStream::connect(socket).await?);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(connection);
        *send = Some(sender);
    }
    let sender = send.as_mut().context("no connection")?;
    if sender.ready().await.is_err() {
        *send = None;
        return Ok(0);
    }
    // A server that refuses more than the stream ends the connection: the next input has another.
    let Ok(answer) = sender.send_request(request).await else {
        *send = None;
        return Ok(0);
    };
    let mut answer = answer.into_body();
    let mut length = 0;
    while let Some(frame) = answer.frame().await {
        // The server may reset a stream that it has ended while the rest of the request comes.
        let Ok(frame) = frame else { break };
        length += frame.data_ref().map_or(0, Bytes::len);
        ensure!(length <= LONGEST, "the answer has more than {length} bytes");
    }
    Ok(length)
}

/// Two of each type.
fn snapshot() -> Arc<Snapshot> {
    let layers = Kind::ALL.into_iter().map(|kind| {
        let entries = ["a", "b"].map(|name| {
            let name = if kind == Kind::VirtualHost { format!("a/{name}") } else { name.into() };
            let resource = Resource::new(kind, name, Bytes::from_static(b"fuzzed"), None);
            (resource.name().clone(), Entry::Plain(resource))
        });
        (kind, vec![Layer::plain(Table::new(kind, 1, BTreeMap::from(entries)))])
    });
    let spec = NodeSpec {
        group: "all".into(),
        identity: None,
        lenses: Vec::new(),
        own: Vec::new(),
        retry: false,
    };
    Arc::new(Snapshot {
        generation: 1,
        nodes: std::iter::once((Arc::<str>::from(NODE), Arc::new(spec))).collect(),
        groups: BTreeMap::from([("all".into(), Arc::new(Group::new(layers.collect())))]),
        stems: BTreeMap::new(),
        heard: 0,
        origin: None,
    })
}

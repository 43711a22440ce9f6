//! A server on loopback or on a Unix socket.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};

use super::super::{Clients, Listener, Server, Stats, Store};
use super::world::{NODE, World};

pub const PLANE: &str = "aether/test";

/// The node of every client.
pub fn node() -> Node {
    Node { id: NODE.into(), ..Node::default() }
}

/// How many nodes the store's snapshot knows.
pub fn named(store: &Store) -> usize {
    store.current().map_or(0, |snapshot| snapshot.nodes.len())
}

/// A server that runs.
pub struct Served {
    pub store: Store,
    pub stats: Arc<Stats>,
    pub clients: Arc<Clients>,
    address: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Served {
    pub async fn start(world: &mut World, unix: bool) -> Self {
        let store = Store::default();
        world.publish(&store);
        let admit = Arc::new(|id: &str| {
            assert_ne!(id, "panic");
            if id.starts_with("pod/") { Ok(()) } else { Err("say pod/<namespace>/<name>".into()) }
        });
        let server = Server::new(&store, PLANE, admit);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xds.sock");
        let (listener, address) = if unix {
            (Listener::unix(&path).await.unwrap(), path.to_str().unwrap().to_string())
        } else {
            let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
            let address = listener.address().unwrap();
            (listener, format!("http://{address}"))
        };
        let (stats, clients) = (server.stats(), server.clients());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(vec![listener], async {
            let _ = stopped.await;
        }));
        Self { store, stats, clients, address, stop, task, _folder: folder }
    }

    /// A new connection.
    pub async fn channel(&self) -> Channel {
        if self.address.starts_with("http") {
            return Endpoint::new(self.address.clone()).unwrap().connect().await.unwrap();
        }
        let path = self.address.clone();
        let connect = tower::service_fn(move |_| {
            let path = path.clone();
            async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
        });
        Endpoint::from_static("http://unix").connect_with_connector(connect).await.unwrap()
    }

    /// Waits until no stream and no connection is left.
    pub async fn quiet(&self) {
        for _ in 0..200 {
            let open = self.stats.streams.load(Relaxed) + self.stats.connections.load(Relaxed);
            if open == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("streams or connections are left: {:?}", self.stats);
    }

    /// Stops it, and waits for its end.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}

#[tokio::test]
async fn a_port_in_use_says_so() {
    let first = Listener::tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let again = Listener::tcp(first.address().unwrap()).await.unwrap_err().to_string();
    assert!(again.contains("another process has the port"), "{again}");
    let foreign = Listener::tcp("192.0.2.1:1".parse().unwrap()).await.unwrap_err().to_string();
    assert!(foreign.contains("192.0.2.1:1") && foreign.contains("no interface"), "{foreign}");
}

//! The rig: pods, backends, clients and real Envoys on one machine, for the tests and the demo.
//!
//! A [`net::Net`] is a node without any link to the world: a network namespace with a bridge, to which pods (network
//! namespaces of their own) are attached. In a pod run an [`envoy::Envoy`] as the sidecar's user and, through
//! [`net::Netns::run`], clients and backends of this very process. [`aether::Aether`] is the program under test. A
//! [`cluster::Cluster`] is a real Kubernetes API server with what belongs to it, and [`spire::Spire`] real identities.
//!
//! Whatever happens, nothing is left behind: everything ends when its value is dropped; a process dies with the
//! process that started it; and namespaces and folders whose maker was killed are swept by the next rig.

pub mod account;
pub mod aether;
pub mod backend;
pub mod busy;
pub mod client;
pub mod cluster;
pub mod command;
pub mod counters;
pub mod delta;
pub mod envoy;
pub mod fuzz;
pub mod helm;
pub mod large;
pub mod latency;
pub mod load;
pub mod loaded;
pub mod mesh;
pub mod net;
pub mod node_proxy;
pub mod objects;
pub mod places;
pub mod plane;
pub mod process;
pub mod program;
pub mod resolver;
pub mod sidecar;
pub mod spire;
pub mod trace;
pub mod wire;
pub mod world;

/// Asks again every 20 ms until there is an answer, and fails with `what` and the last reason after `limit`.
pub async fn eventually<T, F>(
    what: &str,
    limit: std::time::Duration,
    mut ask: impl FnMut() -> F,
) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    let start = tokio::time::Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(reason) if start.elapsed() >= limit => {
                return Err(reason.context(format!("{what}: not within {limit:?}")));
            }
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    }
}

//! What carried a connection or a request: read from an Envoy, not from us.
//!
//! Cluster and endpoint are facts, Envoy's own counters before and after. Chain and virtual host are what Envoy's
//! configuration gives by Envoy's rules of matching.

mod chain;

pub use chain::{Arrival, chain, virtual_host};

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::envoy::Envoy;

/// How many connections and requests each endpoint of each cluster has had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<(String, String), (u64, u64)>);

/// An endpoint that was used between two tallies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// The name of its cluster.
    pub cluster: String,
    /// Its `address:port`.
    pub endpoint: String,
    /// Connections that were made to it.
    pub connections: u64,
    /// Requests that were sent to it.
    pub requests: u64,
}

impl Tally {
    /// What this Envoy has counted so far.
    pub async fn of(envoy: &Envoy) -> Result<Self> {
        Self::read(&envoy.clusters().await?).context("Envoy's /clusters has another shape")
    }

    fn read(clusters: &Value) -> Option<Self> {
        let mut tally = BTreeMap::new();
        let Some(statuses) = clusters.get("cluster_statuses") else {
            // Envoy leaves out what is empty.
            return Some(Self::default());
        };
        for status in statuses.as_array()? {
            let cluster = status.get("name")?.as_str()?;
            let hosts = status.get("host_statuses").and_then(Value::as_array);
            for host in hosts.into_iter().flatten() {
                let stats = host.get("stats").and_then(Value::as_array);
                let count = |name: &str| {
                    let named =
                        |stat: &&Value| stat.get("name").and_then(Value::as_str) == Some(name);
                    let stat = stats.into_iter().flatten().find(named)?;
                    // Envoy writes 64-bit numbers as strings, and leaves a zero out.
                    stat.get("value")?.as_str()?.parse().ok()
                };
                let counts = (count("cx_total").unwrap_or(0), count("rq_total").unwrap_or(0));
                tally.insert((cluster.to_owned(), endpoint(host.get("address")?)), counts);
            }
        }
        Some(Self(tally))
    }

    /// What was used from this tally to a later one.
    pub fn to(&self, later: &Self) -> Vec<Used> {
        let used = later.0.iter().map(|(key, (connections, requests))| {
            let (before_connections, before_requests) =
                self.0.get(key).copied().unwrap_or_default();
            Used {
                cluster: key.0.clone(),
                endpoint: key.1.clone(),
                connections: connections.saturating_sub(before_connections),
                requests: requests.saturating_sub(before_requests),
            }
        });
        used.filter(|used| used.connections > 0 || used.requests > 0).collect()
    }
}

/// An address of Envoy's JSON as `address:port`, or the path of a Unix socket.
fn endpoint(address: &Value) -> String {
    let Some(socket) = address.get("socket_address") else {
        let path = address.pointer("/pipe/path").and_then(Value::as_str);
        return path.unwrap_or("?").to_owned();
    };
    let ip = socket.get("address").and_then(Value::as_str).unwrap_or("?");
    let port = socket.get("port_value").and_then(Value::as_u64).unwrap_or(0);
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Tally, Used};
    use serde_json::{Value, json};

    fn clusters(connections: &str, requests: &str) -> Value {
        json!({"cluster_statuses": [{"name": "http:web", "host_statuses": [{
            "address": {"socket_address": {"address": "fd00::1", "port_value": 80}},
            "stats": [{"name": "cx_total", "value": connections}, {"name": "rq_total", "value": requests},
                {"name": "rq_active", "type": "GAUGE"}],
        }]}]})
    }

    #[test]
    fn what_was_used_is_the_difference() {
        let before = Tally::read(&clusters("1", "4")).unwrap();
        let after = Tally::read(&clusters("1", "5")).unwrap();
        let (cluster, endpoint) = ("http:web".to_owned(), "[fd00::1]:80".to_owned());
        assert_eq!(before.to(&after), [Used { cluster, endpoint, connections: 0, requests: 1 }]);
        assert_eq!(before.to(&before), []);
        assert_eq!(Tally::read(&json!({})).unwrap(), Tally::default());
    }
}

//! Endpoints: where a port of a service is served.

use std::net::IpAddr;
use std::sync::Arc;

use super::Locality;

/// How fit an endpoint is. Which of them a proxy hears of as HEALTHY is decided where the
/// endpoints that it may use are known, since a drain without anything ready must still serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Health {
    /// Ready, terminating or not.
    Ready,
    /// Not ready, but terminating and still serving: used where nothing is ready.
    Draining,
    /// Neither.
    Unready,
}

/// One endpoint of one port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// The address.
    pub address: IpAddr,
    /// The port there, which is not the Service's.
    pub port: u16,
    /// How fit it is.
    pub health: Health,
    /// The load-balancing weight, 1 to 1000.
    pub weight: u32,
    /// Where it runs; `None` where neither its node nor its slice says.
    pub locality: Option<Locality>,
    /// The node that it runs on, for `internalTrafficPolicy: Local`.
    pub node: Option<Arc<str>>,
}

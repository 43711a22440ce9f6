//! Resources of a view, decoded.

use std::net::IpAddr;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::route::v3::RouteConfiguration;
use prost::Message;

use crate::xds::{Kind, View};

/// A resource that cannot be decoded, or holds what this code does not know how to match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} of the proxy cannot be read ({why}); that is a defect in aether itself: report it")]
pub struct Undecodable {
    what: String,
    why: String,
}

impl Undecodable {
    /// What cannot be read, and why.
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}

/// The capture listener.
#[derive(Debug)]
pub struct Capture(pub(super) Listener);

impl Capture {
    /// The listener of a name; `None` where the view has none.
    pub fn of(view: &View, name: &str) -> Result<Option<Self>, Undecodable> {
        decoded(view, Kind::Listener, name).map(|found| found.map(Self))
    }

    /// Whether it listens on an address of this family too.
    pub fn listens_like(&self, ip: IpAddr) -> bool {
        use envoy_types::pb::envoy::config::core::v3::{Address, address::Address as Form};
        let of = |address: &Option<Address>| match address.as_ref()?.address.as_ref()? {
            Form::SocketAddress(socket) => socket.address.parse::<IpAddr>().ok(),
            _ => None,
        };
        let more = self.0.additional_addresses.iter().map(|one| of(&one.address));
        std::iter::once(of(&self.0.address))
            .chain(more)
            .flatten()
            .any(|own| own.is_ipv6() == ip.is_ipv6())
    }
}

/// The table of a name.
pub fn routes(view: &View, name: &str) -> Result<Option<RouteConfiguration>, Undecodable> {
    decoded(view, Kind::Routes, name)
}

/// The cluster of a name.
pub fn cluster(view: &View, name: &str) -> Result<Option<Cluster>, Undecodable> {
    decoded(view, Kind::Cluster, name)
}

/// The load assignment of a name.
pub fn assignment(view: &View, name: &str) -> Result<Option<ClusterLoadAssignment>, Undecodable> {
    decoded(view, Kind::Endpoints, name)
}

pub(super) fn decoded<T: Message + Default>(
    view: &View,
    kind: Kind,
    name: &str,
) -> Result<Option<T>, Undecodable> {
    let Some(resource) = view.get(kind, name) else { return Ok(None) };
    let read = T::decode(resource.body().to_bytes());
    read.map(Some)
        .map_err(|error| Undecodable::new(format!("the resource {name}"), error.to_string()))
}

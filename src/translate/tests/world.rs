//! Projections for tests, and what a proxy sees of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::SubstitutionFormatString;
use envoy_types::pb::envoy::config::core::v3::data_source::Specifier;
use envoy_types::pb::envoy::config::core::v3::substitution_format_string::Format;
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use prost::Message;

use crate::model::{
    Endpoint, Health, HttpVersion, Locality, MeshPod, MeshPort, MeshService, Place, PodKey,
    Projection, Protocol, ServiceKey, TrafficScope, Upstreams,
};
use crate::translate::{CaptureMode, Settings, Translator};
use crate::xds::{Kind, Snapshot, Version, View};

pub(super) const HTTP: Protocol = Protocol::Http(HttpVersion::AsClient);
pub(super) const TCP: Protocol = Protocol::Tcp;

pub(super) fn port(number: u16, protocol: Protocol) -> MeshPort {
    MeshPort { number, protocol, endpoints: vec![endpoint("10.1.0.1", Health::Ready)] }
}

pub(super) fn endpoint(address: &str, health: Health) -> Endpoint {
    let address = address.parse().unwrap();
    Endpoint { address, port: 8080, health, weight: 1, locality: None, node: None }
}

pub(super) fn service(key: &str, ips: &[&str], ports: &[(u16, Protocol)]) -> MeshService {
    let key: ServiceKey = key.parse().unwrap();
    let ips: Vec<IpAddr> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
    MeshService {
        service: key.name.clone(),
        key,
        cluster_ips: ips.clone(),
        owned_ips: ips,
        headless: false,
        owns_short_name: true,
        ports: ports.iter().map(|(number, protocol)| port(*number, *protocol)).collect(),
        default_port: ports[0].0,
        scope: TrafficScope::Cluster,
    }
}

pub(super) fn pod(key: &str, place: Place) -> MeshPod {
    let key: PodKey = key.parse().unwrap();
    let service_account = "default".into();
    MeshPod { key, uid: None, place, ipv6: false, service_account, upstreams: Upstreams::All }
}

/// A pod that lists its upstreams, as `ns/name`.
pub(super) fn listing(key: &str, listed: &[&str]) -> MeshPod {
    let listed = listed.iter().map(|key| key.parse().unwrap()).collect();
    let upstreams = Upstreams::Listed(Arc::new(listed));
    MeshPod { upstreams, ..pod(key, Place::default()) }
}

pub(super) fn place(node: &str, region: &str, zone: &str) -> Place {
    Place { node: Some(node.into()), locality: Some(Locality::new(region, zone)) }
}

pub(super) fn projection(
    services: impl IntoIterator<Item = MeshService>,
    pods: impl IntoIterator<Item = MeshPod>,
) -> Projection {
    let services = services.into_iter().map(|s| (s.key.clone(), Arc::new(s)));
    let pods = pods.into_iter().map(|p| (p.key.clone(), Arc::new(p)));
    Projection { services: services.collect(), pods: pods.collect(), ..Projection::default() }
}

pub(super) fn settings(mode: CaptureMode) -> Settings {
    Settings { mode, ..Settings::default() }
}

/// The projection with one pod `shop/web` in it, translated.
pub(super) fn seen(
    mode: CaptureMode,
    services: impl IntoIterator<Item = MeshService>,
) -> Arc<Snapshot> {
    let projection = projection(services, [pod("shop/web", Place::default())]);
    Translator::new(settings(mode)).translate(&projection).snapshot
}

pub(super) fn view(snapshot: &Arc<Snapshot>, node: &str, protocol: &str) -> View {
    View::new(snapshot, node, &protocol.into()).unwrap()
}

/// Decodes every resource of a type.
pub(super) fn decoded<T: Message + Default>(view: &View, kind: Kind) -> BTreeMap<String, T> {
    let bodies = view.names(kind).into_iter().map(|name| {
        let resource = view.get(kind, &name).unwrap();
        (name.to_string(), T::decode(resource.body().to_bytes()).unwrap())
    });
    bodies.collect()
}

pub(super) fn listener(snapshot: &Arc<Snapshot>) -> Listener {
    decoded(&view(snapshot, "pod/shop/web", "delta"), Kind::Listener)
        .remove("capture_shop_web")
        .unwrap()
}

/// The virtual hosts of a table on a state-of-the-world stream, by name.
pub(super) fn hosts(
    snapshot: &Arc<Snapshot>,
    node: &str,
    table: &str,
) -> BTreeMap<String, VirtualHost> {
    let routes: BTreeMap<String, RouteConfiguration> =
        decoded(&view(snapshot, node, "sotw"), Kind::Routes);
    let hosts = routes[table].virtual_hosts.iter();
    hosts.map(|host| (host.name.clone(), host.clone())).collect()
}

/// The text of a format.
pub(super) fn text(format: &SubstitutionFormatString) -> String {
    let Some(Format::TextFormatSource(source)) = &format.format else { panic!("{format:?}") };
    let Some(Specifier::InlineString(text)) = &source.specifier else { panic!("{source:?}") };
    text.clone()
}

/// Everything that any node sees on either protocol, by node, protocol, type and name.
pub(super) type Everything = BTreeMap<(String, &'static str, Kind, String), (Version, Bytes)>;

pub(super) fn everything(snapshot: &Arc<Snapshot>) -> Everything {
    let mut all = Everything::new();
    for node in snapshot.nodes.keys() {
        for protocol in ["sotw", "delta"] {
            let view = view(snapshot, node, protocol);
            for kind in Kind::ALL {
                for name in view.names(kind) {
                    let resource = view.get(kind, &name).unwrap();
                    let of = (resource.version(), resource.body().to_bytes());
                    all.insert((node.to_string(), protocol, kind, name.to_string()), of);
                }
            }
        }
    }
    all
}

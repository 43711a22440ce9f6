//! Whatever the projection: nothing that Envoy would refuse, nothing that dangles, and the same
//! bytes by whatever way it was reached.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use proptest::prelude::*;

use super::world::{decoded, everything, pod, settings, view};
use crate::model::{
    Endpoint, Health, HttpVersion, Locality, MeshPort, MeshService, Place, Projection, Protocol,
    ServiceKey, TrafficScope, Upstreams,
};
use crate::translate::{CaptureMode, DnsFilter, Settings, Translator};
use crate::xds::{Kind, Snapshot, View};

fn protocols() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        Just(Protocol::Tcp),
        Just(Protocol::Http(HttpVersion::Http1)),
        Just(Protocol::Http(HttpVersion::Http2)),
        Just(Protocol::Http(HttpVersion::AsClient)),
    ]
}

fn endpoints() -> impl Strategy<Value = Endpoint> {
    let health = prop_oneof![Just(Health::Ready), Just(Health::Draining), Just(Health::Unready)];
    let zone = proptest::option::of(0..3u8);
    (1..6u8, 0..3u16, health, 1..4u32, zone, proptest::option::of(0..4u8)).prop_map(
        |(ip, port, health, weight, zone, node)| Endpoint {
            address: IpAddr::from([10, 1, 0, ip]),
            port,
            health,
            weight,
            locality: zone.map(|zone| Locality::new("eu", format!("eu{zone}"))),
            node: node.map(|node| format!("n{node}").into()),
        },
    )
}

pub(super) fn services() -> impl Strategy<Value = MeshService> {
    let name = prop_oneof![9 => "[a-c]", 1 => Just("Bad_%X".to_owned())];
    let ports = proptest::collection::vec(
        (
            prop_oneof![Just(80), Just(18081), 0..=u16::MAX],
            protocols(),
            proptest::collection::vec(endpoints(), 0..4),
        ),
        0..4,
    );
    let ips = proptest::collection::vec(0..6u8, 0..3);
    let scope = prop_oneof![
        Just(TrafficScope::Cluster),
        Just(TrafficScope::PreferNode),
        Just(TrafficScope::Node)
    ];
    (("[ab]", name.clone(), name), ports, ips, any::<(bool, bool, bool)>(), scope).prop_map(
        |((namespace, name, own), ports, ips, (headless, short, v6), scope)| {
            let ip = |n: &u8| {
                if v6 {
                    IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(*n)])
                } else {
                    IpAddr::from([10, 96, 0, *n])
                }
            };
            let ips: Vec<IpAddr> = if headless { Vec::new() } else { ips.iter().map(ip).collect() };
            let ports: Vec<MeshPort> = ports
                .into_iter()
                .map(|(number, protocol, endpoints)| MeshPort { number, protocol, endpoints })
                .collect();
            MeshService {
                key: ServiceKey::new(namespace, name),
                service: own.into(),
                cluster_ips: ips.clone(),
                owned_ips: ips,
                headless,
                owns_short_name: short,
                default_port: ports.first().map_or(1, |port| port.number),
                ports,
                scope,
            }
        },
    )
}

/// What a pod lists, where it does.
pub(super) fn lists() -> impl Strategy<Value = Upstreams> {
    let key = ("[ab]", "[a-c]").prop_map(|(namespace, name)| ServiceKey::new(namespace, name));
    let listed = proptest::collection::btree_set(key, 0..4);
    prop_oneof![
        1 => Just(Upstreams::All),
        3 => listed.prop_map(|listed| Upstreams::Listed(Arc::new(listed))),
    ]
}

fn projections() -> impl Strategy<Value = Projection> {
    let zone = proptest::option::of(0..3u8);
    let pods = proptest::collection::vec(("[ab]/[pq]", 0..4u8, zone, lists()), 1..4);
    (proptest::collection::vec(services(), 0..8), pods).prop_map(|(services, pods)| Projection {
        services: services.into_iter().map(|s| (s.key.clone(), Arc::new(s))).collect(),
        pods: pods
            .into_iter()
            .map(|(key, node, zone, upstreams)| {
                let locality = zone.map(|zone| Locality::new("eu", format!("eu{zone}")));
                let mut pod = pod(&key, Place { node: Some(format!("n{node}").into()), locality });
                pod.upstreams = upstreams;
                (pod.key.clone(), Arc::new(pod))
            })
            .collect(),
        ..Projection::default()
    })
}

pub(super) fn modes() -> impl Strategy<Value = CaptureMode> {
    prop_oneof![Just(CaptureMode::RedirectAll), Just(CaptureMode::Scoped)]
}

/// What Envoy checks of the virtual hosts of one table, and whether their clusters exist.
fn check_hosts<'a>(view: &View, hosts: impl Iterator<Item = &'a VirtualHost>) {
    let mut domains = BTreeSet::new();
    for host in hosts {
        assert!(!host.domains.is_empty() && !host.routes.is_empty(), "{}", host.name);
        assert!(host.domains.is_sorted());
        for domain in &host.domains {
            assert!(domains.insert(domain.clone()), "{domain} twice");
        }
        for route in &host.routes {
            let cluster = match route.action.as_ref().unwrap() {
                Action::Route(to) => match to.cluster_specifier.as_ref().unwrap() {
                    ClusterSpecifier::Cluster(cluster) => cluster,
                    other => panic!("{other:?}"),
                },
                Action::DirectResponse(_) => continue,
                other => panic!("{other:?}"),
            };
            assert!(view.get(Kind::Cluster, cluster).is_some(), "{cluster} is missing");
        }
    }
}

fn check_listener(view: &View, listener: &Listener) {
    if listener.name.starts_with("dns_") {
        let names = super::dns::table(listener).into_iter().map(|(name, _)| name);
        let names: Vec<String> = names.collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        let labels = |name: &String| name.split('.').all(crate::model::is_dns_label);
        assert!(names.iter().all(labels), "{names:?}");
        return;
    }
    let mut matches = BTreeSet::new();
    let mut names = BTreeSet::new();
    for chain in &listener.filter_chains {
        assert!(!chain.filters.is_empty() && names.insert(chain.name.clone()), "{}", chain.name);
        assert!(matches.insert(format!("{:?}", chain.filter_chain_match)), "{}", chain.name);
        let on = chain.filter_chain_match.clone().unwrap_or_default();
        assert_eq!(on.destination_port.is_some(), chain.name == "cap_self");
        if let Some(key) = chain.name.strip_prefix("cap_tcp_") {
            let (namespace, rest) = key.split_once('/').unwrap();
            let name = rest.split('_').next().unwrap();
            // Whatever the ports are, the mesh Service port leads somewhere.
            let cluster = format!("tcp:{name}.{namespace}.aether.internal:18081");
            assert!(view.get(Kind::Cluster, &cluster).is_some(), "{cluster} is missing");
        }
    }
}

/// What Envoy refuses, and what would dangle.
fn check(snapshot: &Arc<Snapshot>) {
    for node in snapshot.nodes.keys() {
        for protocol in ["sotw", "delta"] {
            let view = view(snapshot, node, protocol);
            for (name, cluster) in decoded::<Cluster>(&view, Kind::Cluster) {
                let Some(eds) = cluster.eds_cluster_config else { continue };
                assert!(view.get(Kind::Endpoints, &eds.service_name).is_some(), "{name}");
            }
            for (name, assignment) in decoded::<ClusterLoadAssignment>(&view, Kind::Endpoints) {
                assert_eq!(assignment.cluster_name, name);
                let priorities: BTreeSet<u32> =
                    assignment.endpoints.iter().map(|group| group.priority).collect();
                assert!(priorities.iter().copied().eq(0..u32::try_from(priorities.len()).unwrap()));
                assert!(assignment.endpoints.iter().all(|group| !group.lb_endpoints.is_empty()));
            }
            for (name, listener) in decoded::<Listener>(&view, Kind::Listener) {
                assert_eq!(listener.name, name);
                check_listener(&view, &listener);
            }
            let routes: BTreeMap<String, RouteConfiguration> = decoded(&view, Kind::Routes);
            for (name, routes) in &routes {
                assert_eq!(&routes.name, name);
                let inside = routes.virtual_hosts.iter();
                assert!(inside.clone().all(|host| host.name.starts_with(&format!("{name}/"))));
                check_hosts(&view, inside);
            }
            let hosts = decoded::<VirtualHost>(&view, Kind::VirtualHost);
            assert!(hosts.iter().all(|(name, host)| *name == host.name));
            check_hosts(&view, hosts.values());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_is_refused_and_the_way_does_not_matter(
        steps in proptest::collection::vec(projections(), 1..4),
        mode in modes(),
    ) {
        let dns = Some(DnsFilter::default());
        let settings = Settings { dns, ..settings(mode) };
        let mut follower = Translator::new(settings.clone());
        for step in &steps {
            let followed = follower.translate(step);
            check(&followed.snapshot);
            let fresh = Translator::new(settings.clone()).translate(step);
            prop_assert_eq!(&followed.findings, &fresh.findings);
            prop_assert!(everything(&followed.snapshot) == everything(&fresh.snapshot));
            prop_assert_eq!(&followed.snapshot.nodes, &fresh.snapshot.nodes);
        }
    }
}

//! Whatever the mesh and whatever its changes: a pod that lists its upstreams sees what a pod without
//! a list sees, less what it does not list, and is told so on either protocol without a gap.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::listener::v3::filter::ConfigType;
use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, http_connection_manager::RouteSpecifier,
};
use proptest::prelude::*;
use prost::Message;

use super::client::Client;
use super::property::{lists, modes, services};
use super::world::{decoded, pod, projection, settings, view};
use crate::model::{Locality, Place, PodKey, Projection, ServiceKey, Upstreams};
use crate::translate::{DnsFilter, Settings, Translator};
use crate::xds::{Kind, Protocol, Snapshot, View};

/// The pods; each has a twin, `<name>-all`, that lists nothing.
const PODS: [&str; 3] = ["a/p", "a/q", "b/p"];

fn projections() -> impl Strategy<Value = Projection> {
    let pods = proptest::collection::vec((0..4u8, 0..3u8, lists()), PODS.len());
    (proptest::collection::vec(services(), 0..8), pods).prop_map(|(services, pods)| {
        let pods = PODS.iter().zip(pods).flat_map(|(key, (node, zone, upstreams))| {
            let locality = Some(Locality::new("eu", format!("eu{zone}")));
            let place = Place { node: Some(format!("n{node}").into()), locality };
            let mut one = pod(key, place.clone());
            one.upstreams = upstreams;
            [one, pod(&format!("{key}-all"), place)]
        });
        projection(services, pods.collect::<Vec<_>>())
    })
}

/// The service of a resource; `None` for what every pod needs.
fn owner(kind: Kind, name: &str) -> Option<ServiceKey> {
    let host = |host: &str| {
        let mut labels = host.split('.');
        let (name, namespace) = (labels.next().unwrap(), labels.next().unwrap());
        Some(ServiceKey::new(namespace, name))
    };
    match kind {
        Kind::Cluster => host(name.split_once(':')?.1),
        Kind::Endpoints => Some(name.rsplit_once(':').unwrap().0.parse().unwrap()),
        Kind::VirtualHost => match name.rsplit_once('/').unwrap().1 {
            "any" => None,
            name => host(name),
        },
        Kind::Listener | Kind::Routes => None,
    }
}

/// Under another route configuration.
fn renamed(mut host: VirtualHost, table: &str) -> VirtualHost {
    let (_, name) = host.name.rsplit_once('/').unwrap();
    host.name = format!("{table}/{name}");
    host
}

/// What of a listener is a scope's, with another name and other routes.
fn narrowed(mut listener: Listener, listed: &Upstreams, name: &str, table: &str) -> Listener {
    listener.name = name.to_owned();
    listener.filter_chains.retain(|chain| {
        let key = chain.name.strip_prefix("cap_tcp_").or(chain.name.strip_prefix("cap_http_"));
        let key = key.map(|key| key.split('_').next().unwrap().parse().unwrap());
        key.is_none_or(|key| listed.take_in(&key))
    });
    let filters = listener.filter_chains.iter_mut().flat_map(|chain| chain.filters.iter_mut());
    for filter in filters {
        let Some(ConfigType::TypedConfig(any)) = &mut filter.config_type else { continue };
        if !any.type_url.ends_with("HttpConnectionManager") {
            continue;
        }
        let mut manager = HttpConnectionManager::decode(any.value.as_slice()).unwrap();
        if let Some(RouteSpecifier::Rds(rds)) = &mut manager.route_specifier {
            rds.route_config_name = table.to_owned();
        }
        any.value = manager.encode_to_vec();
    }
    listener
}

fn bodies(view: &View, kind: Kind, listed: &Upstreams) -> BTreeMap<Arc<str>, Bytes> {
    let all = view.all(kind).into_iter();
    let of = all.filter(|r| owner(kind, r.name()).is_none_or(|key| listed.take_in(&key)));
    of.map(|resource| (resource.name().clone(), resource.body().to_bytes())).collect()
}

/// Holds the view of a pod against that of its twin.
fn compare(projection: &Projection, snapshot: &Arc<Snapshot>, key: &str) {
    let (namespace, name) = key.split_once('/').unwrap();
    let listed = &projection.pods[&key.parse::<PodKey>().unwrap()].upstreams;
    let table = match listed {
        Upstreams::All => format!("cap_http.{namespace}"),
        Upstreams::Listed(_) => format!("cap_http.{namespace}.{name}"),
    };
    for protocol in ["delta", "sotw"] {
        let scoped = view(snapshot, &format!("pod/{key}"), protocol);
        let whole = view(snapshot, &format!("pod/{key}-all"), protocol);
        for kind in [Kind::Cluster, Kind::Endpoints] {
            let all = Upstreams::All;
            assert_eq!(bodies(&scoped, kind, &all), bodies(&whole, kind, listed), "{kind:?}");
        }
        let hosts: BTreeMap<String, VirtualHost> = decoded(&whole, Kind::VirtualHost);
        let of = |host: &VirtualHost| {
            owner(Kind::VirtualHost, &host.name).is_none_or(|key| listed.take_in(&key))
        };
        let hosts = hosts.into_values().filter(of).map(|host| renamed(host, &table));
        let hosts: BTreeMap<_, _> = hosts.map(|host| (host.name.clone(), host)).collect();
        assert_eq!(decoded::<VirtualHost>(&scoped, Kind::VirtualHost), hosts);

        let routes: BTreeMap<String, RouteConfiguration> = decoded(&whole, Kind::Routes);
        let routes = routes.into_values().map(|mut routes| {
            if routes.name != "cap_http" {
                routes.name.clone_from(&table);
            }
            routes.virtual_hosts.retain(of);
            let name = routes.name.clone();
            routes.virtual_hosts =
                routes.virtual_hosts.into_iter().map(|host| renamed(host, &name)).collect();
            (name, routes)
        });
        let routes: BTreeMap<_, _> = routes.collect();
        assert_eq!(decoded::<RouteConfiguration>(&scoped, Kind::Routes), routes);

        let listeners: BTreeMap<String, Listener> = decoded(&whole, Kind::Listener);
        let found: BTreeMap<String, Listener> = decoded(&scoped, Kind::Listener);
        let own = format!("capture_{namespace}_{name}");
        let other = listeners[&format!("{own}-all")].clone();
        let found_capture = found[&own].clone();
        // Both encoded anew, so that only the order of fields is none.
        assert_eq!(
            narrowed(found_capture, &Upstreams::All, &own, &table),
            narrowed(other, listed, &own, &table)
        );
        let dns = |name: &str| listeners.get(name).or(found.get(name)).map(super::dns::table);
        let found = dns(&format!("dns_{namespace}_{name}")).unwrap();
        let whole = dns(&format!("dns_{namespace}_{name}-all")).unwrap();
        let of = |name: &str| {
            let labels: Vec<_> =
                name.strip_suffix(".aether.internal").unwrap().split('.').collect();
            let bearers = projection.services.values().filter(|s| s.owns_short_name);
            match *labels {
                [name, namespace] => Some(ServiceKey::new(namespace, name)),
                // The projection sees to it that a short name has one owner; random worlds do not.
                [name] => {
                    let mut bearers = bearers.filter(|s| *s.key.name == *name);
                    bearers.next().filter(|_| bearers.next().is_none()).map(|s| s.key.clone())
                }
                _ => None,
            }
        };
        let listed_names = |rows: Vec<(String, Vec<String>)>| -> BTreeSet<_> {
            let rows = rows.into_iter();
            rows.filter(|row| of(&row.0).is_some_and(|key| listed.take_in(&key))).collect()
        };
        let all: BTreeSet<_> = found.iter().filter(|row| of(&row.0).is_some()).cloned().collect();
        assert_eq!(all, listed_names(whole));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_scope_is_the_whole_less_what_is_not_listed(
        steps in proptest::collection::vec(projections(), 1..4),
        mode in modes(),
    ) {
        let settings = Settings { dns: Some(DnsFilter::default()), ..settings(mode) };
        let mut translator = Translator::new(settings);
        for step in &steps {
            let snapshot = translator.translate(step).snapshot;
            for key in PODS {
                compare(step, &snapshot, key);
            }
        }
    }

    #[test]
    fn streams_follow_every_change_of_a_list_without_a_gap(
        steps in proptest::collection::vec((projections(), 0..3u8), 1..6),
        mode in modes(),
    ) {
        let mut translator = Translator::new(settings(mode));
        let node = format!("pod/{}", PODS[0]);
        for (protocol, lens) in [(Protocol::Delta, "delta"), (Protocol::Sotw, "sotw")] {
            let mut client = Client::new(protocol, &node);
            let mut first = true;
            for (step, dice) in &steps {
                let snapshot = translator.translate(step).snapshot;
                let again = *dice == 0 && protocol == Protocol::Delta;
                if std::mem::take(&mut first) || again {
                    client.connect(&snapshot);
                } else {
                    client.publish(&snapshot);
                }
                client.settle();
                // What drains may do so for longer than until the next change. On a state-of-the-world
                // stream, where nobody says that a table is gone, one that returns is the old one at first.
                if *dice < 2 || protocol == Protocol::Sotw {
                    client.drain();
                    client.has_all_of(&view(&snapshot, &node, lens));
                    // One that is up to date is told nothing when it comes back.
                    if protocol == Protocol::Delta {
                        let heard = client.heard;
                        client.connect(&snapshot);
                        client.settle();
                        client.has_all_of(&view(&snapshot, &node, lens));
                        prop_assert!(client.heard <= heard + 2, "{} more", client.heard - heard);
                    }
                }
            }
        }
    }
}

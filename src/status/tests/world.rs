//! A small snapshot of real messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use prost::Message;

use crate::xds::{
    Entry, Group, Kind, Layer, NodeSpec, Own, Resource, Snapshot, Stem, Table, field,
};

pub const NODE: &str = "pod/shop/cart";

pub fn cluster(name: &str) -> Resource {
    let body = Cluster { name: name.into(), ..Cluster::default() }.encode_to_vec();
    Resource::new(Kind::Cluster, name, Bytes::from(body), None)
}

/// Two clusters that two groups share, a virtual host by its tail, and a listener for each of two
/// nodes under one tail.
pub fn snapshot() -> Arc<Snapshot> {
    let clusters = ["a", "b"].map(|name| (name.into(), Entry::Plain(cluster(name))));
    let clusters = Table::new(Kind::Cluster, 1, clusters.into());
    let host = Entry::Stem(Stem::new(field::only(2, b"example.com")));
    let hosts = Table::new(Kind::VirtualHost, 1, [("v".into(), host)].into());
    let group = |namespace: &str| {
        let hosts = Layer::prefixed(hosts.clone(), format!("{namespace}/"));
        let layers = [
            (Kind::Cluster, vec![Layer::plain(clusters.clone())]),
            (Kind::VirtualHost, vec![hosts]),
        ];
        (Arc::from(namespace), Arc::new(Group::new(layers.into())))
    };
    let node = |id: &str, group: &str| {
        let listener = Own {
            kind: Kind::Listener,
            name: "l".into(),
            head: field::only(1, b"l"),
            stem: "tail".into(),
        };
        let spec = NodeSpec {
            group: group.into(),
            lenses: Vec::new(),
            own: vec![listener],
            identity: None,
            retry: false,
        };
        (Arc::from(id), Arc::new(spec))
    };
    let stem = Stem::new(field::only(18, b"shared"));
    Arc::new(Snapshot {
        generation: 7,
        nodes: vec![node(NODE, "shop"), node("pod/pay/till", "pay")].into(),
        groups: [group("shop"), group("pay")].into(),
        stems: BTreeMap::from([("tail".into(), stem)]),
        heard: 0,
        origin: None,
    })
}

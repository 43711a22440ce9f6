//! Whatever happened before, what is served is what the objects say now.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::{IndexSettings, TranslateSettings, update};
use crate::capture::Reconciler;
use crate::index::tests::order::{object, surroundings};
use crate::index::tests::put;
use crate::index::{Change, Id};
use crate::model::Pins;
use crate::translate::DnsFilter;
use crate::xds::{Kind, Snapshot, View};

const KINDS: [Kind; 5] =
    [Kind::Cluster, Kind::Endpoints, Kind::Listener, Kind::Routes, Kind::VirtualHost];

/// A node, a protocol, and the kind and name of a resource.
type Of = (Arc<str>, &'static str, Kind, Arc<str>);

/// All that every proxy gets, on both protocols.
fn served(snapshot: &Arc<Snapshot>) -> BTreeMap<Of, Bytes> {
    let mut served = BTreeMap::new();
    for (node, protocol) in snapshot.nodes.keys().flat_map(|node| [(node, "delta"), (node, "sotw")])
    {
        let view = View::new(snapshot, node, &protocol.into()).unwrap();
        for kind in KINDS {
            for resource in view.all(kind) {
                let of = (node.clone(), protocol, kind, resource.name().clone());
                served.insert(of, resource.body().to_bytes());
            }
        }
    }
    served
}

fn reconciler() -> Reconciler {
    let translate = TranslateSettings { dns: Some(DnsFilter::default()), ..Default::default() };
    let mut reconciler = Reconciler::new(IndexSettings::default(), translate);
    let uids = ["u1", "u2"].map(Arc::from).into();
    reconciler.pinned(Some(Arc::new(Pins { folder: "/run".into(), uids })));
    reconciler
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_round_serves_as_if_from_nothing(
        steps in prop::collection::vec((prop_oneof![object(), surroundings()], 0..8u8), 1..60),
    ) {
        let mut followed = reconciler();
        let mut there: BTreeMap<Id, Change> = BTreeMap::new();
        let mut snapshot = None;
        for (object, dice) in &steps {
            let change = put(object);
            let (Change::Put { id, .. } | Change::Remove(id)) = &change;
            let id = id.clone();
            if *dice < 2 {
                there.remove(&id);
                followed.apply(update([Change::Remove(id)]));
            } else {
                there.insert(id, change.clone());
                followed.apply(update([change]));
            }
            // Several changes in a round, now and then, and not each round from nothing too.
            if *dice > 3 {
                // As after a panic, once in a while.
                followed.translating = *dice == 4;
                let last = snapshot.as_ref().map_or(0, |last: &Arc<Snapshot>| last.generation);
                if let Some(next) = followed.reconcile().snapshot {
                    prop_assert!(next.generation >= last);
                    snapshot = Some(next);
                }
            }
            if *dice > 6 {
                let mut fresh = reconciler();
                fresh.apply(update(there.values().cloned()));
                let whole = fresh.reconcile().snapshot.unwrap();
                let last: &Arc<Snapshot> = snapshot.as_ref().unwrap();
                prop_assert!(last.nodes == whole.nodes, "{:?}\n{:?}", last.nodes, whole.nodes);
                prop_assert!(last.groups.keys().eq(whole.groups.keys()));
                prop_assert!(served(last) == served(&whole));
                prop_assert_eq!(&followed.findings, &fresh.findings);
            }
        }
    }
}

//! The reconciler, from updates to snapshots.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod history;

use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Inbox, Metrics, Outcome, Reconciler, spawn};
use crate::capture::names::{self, Names};
use crate::index::{Change, Id, Object, ObjectKind, Settings as IndexSettings};
use crate::model::{Finding, MeshNames, ObjectRef, Pins, Reason, RecordsFile, Severity};
use crate::source::Update;
use crate::translate::Settings as TranslateSettings;
use crate::xds::{Kind, Snapshot, View};

fn id(kind: ObjectKind, name: &str) -> Id {
    Id { kind, namespace: "shop".into(), name: name.into() }
}

fn service(name: &str, mesh_name: &str) -> Change {
    let object: Value = json!({
        "metadata": {
            "namespace": "shop", "name": name,
            "labels": { "aether.io/mesh-service": "true" },
            "annotations": { "aether.io/service": mesh_name }
        },
        "spec": { "clusterIP": "10.96.0.7", "ports": [{ "port": 80 }] }
    });
    let object = Object::Service(serde_json::from_value(object).unwrap());
    Change::Put { id: id(ObjectKind::Service, name), object, origin: None }
}

fn pod(name: &str) -> Change {
    let object = json!({
        "metadata": { "namespace": "shop", "name": name, "labels": { "aether.io/managed": "true" } }
    });
    let object = Object::Pod(serde_json::from_value(object).unwrap());
    Change::Put { id: id(ObjectKind::Pod, name), object, origin: None }
}

fn update(changes: impl IntoIterator<Item = Change>) -> Update {
    Update { changes: changes.into_iter().collect(), findings: Vec::new() }
}

fn reconciler() -> Reconciler {
    let names = MeshNames::default();
    Reconciler::new(
        IndexSettings::new(names.clone(), [], Vec::new()),
        TranslateSettings { names, ..TranslateSettings::default() },
    )
}

fn clusters(snapshot: &Arc<Snapshot>) -> usize {
    let view = View::new(snapshot, "pod/shop/web", &"delta".into()).unwrap();
    view.names(Kind::Cluster).len()
}

#[test]
fn an_empty_mesh_is_a_projection_too() {
    let mut reconciler = reconciler();
    reconciler.apply(Update::default());
    assert!(reconciler.reconcile().snapshot.is_some());
    assert!(reconciler.reconcile().snapshot.is_none(), "nothing has changed");
}

#[test]
fn a_snapshot_bears_what_it_was_made_of_where_it_is_tried_and_nowhere_else() {
    for tried in [false, true] {
        let mut reconciler = reconciler();
        reconciler.tried(tried);
        reconciler.apply(update([service("cart", "cart")]));
        let snapshot = reconciler.reconcile().snapshot.unwrap();
        assert_eq!(snapshot.origin.is_some(), tried);
    }
}

#[test]
fn equal_content_makes_no_snapshot() {
    let mut reconciler = reconciler();
    reconciler.apply(update([service("cart", "cart"), pod("web")]));
    let first = reconciler.reconcile().snapshot.unwrap();
    reconciler.apply(update([pod("web"), service("cart", "cart")]));
    assert!(reconciler.reconcile().snapshot.is_none());
    reconciler.apply(update([Change::Remove(id(ObjectKind::Service, "cart"))]));
    let second = reconciler.reconcile().snapshot.unwrap();
    assert!(second.generation > first.generation);
    assert_eq!(clusters(&first), clusters(&second) + 1);
}

#[test]
fn findings_appear_once_and_vanish_once() {
    let of_source = Finding {
        object: ObjectRef::new("File", "", "a.yaml"),
        severity: Severity::Problem,
        reason: Reason::UnreadableFile,
        origin: None,
        field: String::new(),
        message: "it is no YAML".into(),
        way_out: "mend it".into(),
    };
    let mut reconciler = reconciler();
    let mut first = update([service("cart", "NO"), service("other", "other")]);
    first.findings.push(of_source);
    reconciler.apply(first.clone());
    let reasons: Vec<_> = reconciler.reconcile().appeared.iter().map(|f| f.reason).collect();
    assert!(reasons.contains(&Reason::InvalidValue) && reasons.contains(&Reason::UnreadableFile));
    reconciler.apply(first);
    let again = reconciler.reconcile();
    assert!(again.appeared.is_empty() && again.vanished.is_empty());
    reconciler.apply(update([service("cart", "cart")]));
    let healed = reconciler.reconcile();
    assert_eq!(healed.vanished.len(), 2, "{:?}", healed.vanished);
    assert_eq!(reconciler.projection().unwrap().services.len(), 2);
}

#[test]
fn updates_that_queued_make_one_snapshot_and_the_thread_ends_with_its_source() {
    let published: Arc<Mutex<Vec<Arc<Snapshot>>>> = Arc::default();
    let (sender, receiver) = tokio::sync::mpsc::channel(8);
    for number in 0..8 {
        let name = format!("s{number}");
        sender.try_send(update([service(&name, &name), pod("web")])).unwrap();
    }
    drop(sender);
    let sink = published.clone();
    let publish = move |outcome: &Outcome| {
        sink.lock().unwrap().extend(outcome.snapshot.clone());
    };
    let metrics = Metrics::default();
    let thread = spawn(
        reconciler(),
        Inbox { updates: receiver, fates: None, pins: None, questions: None },
        metrics.clone(),
        None,
        publish,
    )
    .unwrap();
    thread.join().unwrap();
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in ["snapshot_generation 1\n", "services 8\n", "pods 1\n"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let published = published.lock().unwrap();
    assert_eq!(published.len(), 1);
    assert!(clusters(&published[0]) >= 8);
}

#[test]
fn pins_are_served_at_once_and_never_before_the_first_objects() {
    let pins = |uid: &str| {
        let uids = [Arc::from(uid)].into();
        Some(Arc::new(Pins { folder: "/run/aether/netns".into(), uids }))
    };
    let of_node = |name: &str| {
        let object = json!({
            "metadata": {
                "namespace": "shop", "name": name, "uid": name,
                "labels": { "aether.io/managed": "true" }
            },
            "spec": { "nodeName": "n1", "containers": [] }
        });
        let object = Object::Pod(serde_json::from_value(object).unwrap());
        Change::Put { id: id(ObjectKind::Pod, name), object, origin: None }
    };
    let (sender, receiver) = tokio::sync::mpsc::channel(8);
    let (change, pinned) = tokio::sync::watch::channel(None);
    let (publish, published) = std::sync::mpsc::channel();
    let publish = move |outcome: &Outcome| publish.send(outcome.snapshot.clone()).unwrap();
    let metrics = Metrics::default();
    let inbox = Inbox { updates: receiver, fates: None, pins: Some(pinned), questions: None };
    let thread = spawn(reconciler(), inbox, metrics, None, publish).unwrap();
    let next = || published.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
    let listeners = |snapshot| {
        let view = View::new(&snapshot, "node/n1", &"delta".into()).unwrap();
        view.names(Kind::Listener).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    change.send(pins("web")).unwrap();
    assert!(published.recv_timeout(Duration::from_millis(300)).is_err(), "not even emptiness");
    sender.blocking_send(update([of_node("web"), of_node("db")])).unwrap();
    assert_eq!(listeners(next()), ["capture_shop_web"]);
    change.send(pins("db")).unwrap();
    assert_eq!(listeners(next()), ["capture_shop_db"]);
    // Nobody looks any more: what was known last stays, and objects go on.
    drop(change);
    sender.blocking_send(update([service("cart", "cart")])).unwrap();
    assert_eq!(listeners(next()), ["capture_shop_db"]);
    drop(sender);
    thread.join().unwrap();
}

#[test]
fn the_stamp_of_the_names_stays_while_the_reconciler_is_wedged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.json");
    let beat = Duration::from_millis(1100);
    let names = Names::start(&path, beat, names::Metrics::default()).unwrap();
    let (sender, receiver) = tokio::sync::mpsc::channel(8);
    // The second snapshot wedges the thread, until the test lets it go.
    let (wedged, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (is_wedged, may_go, mut count) = (wedged.clone(), go.clone(), 0);
    let publish = move |_: &Outcome| {
        count += 1;
        if count == 2 {
            is_wedged.wait();
            may_go.wait();
        }
    };
    let thread = spawn(
        reconciler(),
        Inbox { updates: receiver, fates: None, pins: None, questions: None },
        Metrics::default(),
        Some(names),
        publish,
    )
    .unwrap();
    let read = || -> RecordsFile {
        serde_json::from_slice(&std::fs::read(&path).unwrap_or_default()).unwrap_or_default()
    };
    let until = |what: &str, holds: &dyn Fn(RecordsFile) -> bool| {
        let start = Instant::now();
        while !holds(read()) {
            assert!(start.elapsed() < 20 * beat, "{what}: {:?}", read());
            std::thread::sleep(Duration::from_millis(5));
        }
        read()
    };
    sender.blocking_send(update([service("cart", "cart")])).unwrap();
    let first = until("the first file", &|file| file.generation == 1);
    until("a stamp", &|file| file.written_at > first.written_at);
    sender.blocking_send(update([service("cart", "cart"), service("pay", "pay")])).unwrap();
    wedged.wait();
    std::thread::sleep(beat / 2);
    let before = read();
    std::thread::sleep(3 * beat);
    assert_eq!(read(), before, "nobody vouches for it");
    go.wait();
    let after = until("the new records", &|file| file.generation == 2);
    assert!(after.written_at > before.written_at && after.records.len() == 2, "{after:?}");
    until("a stamp again", &|file| file.written_at > after.written_at && file.generation == 2);
    drop(sender);
    thread.join().unwrap();
}

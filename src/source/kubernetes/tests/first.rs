//! The first complete state, and what follows.

use super::fake::Fault;
use super::*;
use crate::index::Object;
use crate::source::kubernetes::load;

fn world(fake: &Fake) {
    fake.put("namespaces", json!({ "metadata": { "name": "shop" } }));
    fake.put("nodes", node("n1", "a"));
    fake.put("serviceaccounts", json!({ "metadata": { "name": "web", "namespace": "shop" } }));
    let ports = json!([{ "port": 80 }]);
    fake.put(
        "services",
        json!({ "metadata": { "name": "cart", "namespace": "shop" }, "spec": { "ports": ports } }),
    );
    let slice = json!({ "metadata": { "name": "cart-1", "namespace": "shop" }, "addressType": "IPv4", "endpoints": [] });
    fake.put("endpointslices", slice);
    for name in ["a", "b", "c", "d", "e"] {
        fake.put("pods", pod(name, "10.0.0.1"));
    }
}

const WORLD: [&str; 10] = [
    "+Namespace shop",
    "+Node n1",
    "+ServiceAccount web",
    "+Service cart",
    "+EndpointSlice cart-1",
    "+Pod a",
    "+Pod b",
    "+Pod c",
    "+Pod d",
    "+Pod e",
];

#[tokio::test]
async fn the_first_update_is_all_there_is_by_streams_or_by_pages() {
    for pages_alone in [false, true] {
        let fake = Fake::default();
        if pages_alone {
            fake.with(Fault::PagesAlone);
        }
        world(&fake);
        let mut source = following(&fake);
        let first = source.update().await;
        assert_eq!(words(&first), WORLD, "pages alone: {pages_alone}");
        assert!(first.findings.is_empty(), "{:?}", first.findings);
        source.says(|state| *state == State::Ready).await;
        fake.put("pods", pod("b", "10.0.0.9"));
        fake.delete("pods", "shop", "c");
        let mut told = words(&source.update().await);
        if told.len() < 2 {
            told.extend(words(&source.update().await));
        }
        assert_eq!(told, ["+Pod b", "-Pod c"], "pages alone: {pages_alone}");
        let lists = fake.requests().iter().filter(|uri| !uri.contains("watch=true")).count();
        assert_eq!(lists > 0, pages_alone, "{:?}", fake.requests());
        assert!(source.metric("source_objects{kind=\"Pod\"} 4"));
        assert!(source.metric("source_lists_total{kind=\"Pod\"} 1"));
    }
}

#[tokio::test]
async fn objects_are_trimmed_and_of_nodes_the_metadata_alone_is_asked_for() {
    let fake = Fake::default();
    world(&fake);
    let mut source = following(&fake);
    let first = source.update().await;
    for change in first.changes {
        match change {
            Change::Put { object: Object::Pod(pod), origin, .. } => {
                assert_eq!(origin, None);
                assert!(pod.spec.unwrap().containers.is_empty());
                assert_eq!(pod.metadata.resource_version, None);
            }
            Change::Put { object: Object::Node(node), .. } => {
                assert_eq!(node.metadata.labels.unwrap()["topology.kubernetes.io/zone"], "a");
            }
            _ => {}
        }
    }
    let requests = fake.requests();
    let asked = |path: &str, selector: &str| {
        let found = requests.iter().any(|uri| uri.contains(path) && uri.contains(selector));
        assert!(found, "{path} with {selector} in {requests:?}");
    };
    asked("/api/v1/pods?", "labelSelector=aether.io%2Fmanaged%3Dtrue");
    asked("/api/v1/services?", "labelSelector=aether.io%2Fmesh-service%3Dtrue");
    asked(
        "/apis/discovery.k8s.io/v1/endpointslices?",
        "labelSelector=kubernetes.io%2Fservice-name",
    );
}

#[tokio::test]
async fn an_object_that_cannot_be_read_costs_itself_alone() {
    for pages_alone in [false, true] {
        let fake = Fake::default();
        if pages_alone {
            fake.with(Fault::PagesAlone);
        }
        world(&fake);
        let broken =
            json!({ "metadata": { "name": "b", "namespace": "shop" }, "status": { "podIP": 7 } });
        fake.put("pods", broken.clone());
        let mut source = following(&fake);
        let first = source.update().await;
        assert_eq!(first.changes.len(), WORLD.len() - 1);
        let told: Vec<_> = first.findings.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        for word in ["UnreadableObject: Pod shop/b", "status.podIP", "7", "left out"] {
            assert!(told[0].contains(word), "{word} in {told:?}");
        }
        fake.put("pods", pod("b", "10.0.0.2"));
        let healed = source.update().await;
        assert_eq!((words(&healed), healed.findings.len()), (vec!["+Pod b".to_owned()], 0));
        fake.put("pods", broken);
        let kept = source.update().await;
        assert!(kept.changes.is_empty() && kept.findings[0].message.contains("form is kept"));
        // The watch went on from it.
        fake.put("pods", pod("a", "10.0.0.3"));
        assert_eq!(words(&source.update().await), ["+Pod a"]);
    }
}

#[tokio::test]
async fn what_does_not_matter_is_not_told() {
    let fake = Fake::default();
    world(&fake);
    let mut source = following(&fake);
    source.update().await;
    for round in 0..20 {
        let mut heartbeat = node("n1", "a");
        heartbeat["metadata"]["annotations"] = json!({ "heartbeat": round.to_string() });
        fake.put("nodes", heartbeat);
        let mut probed = pod("a", "10.0.0.1");
        probed["status"]["startTime"] = "2026-11-30T11:45:29Z".into();
        probed["status"]["observedGeneration"] = round.into();
        fake.put("pods", probed);
    }
    source.silence().await;
    fake.put("nodes", node("n1", "b"));
    assert_eq!(words(&source.update().await), ["+Node n1"]);
}

#[tokio::test]
async fn everything_can_be_listed_once() {
    let fake = Fake::default();
    world(&fake);
    let update = load(&connection(&fake)).await.unwrap();
    assert_eq!(words(&update), WORLD);
    let requests = fake.requests();
    assert!(requests.iter().all(|uri| !uri.contains("watch=")), "{requests:?}");
    let pods = requests.iter().filter(|uri| uri.starts_with("/api/v1/pods?"));
    assert!(pods.clone().count() == 3 && !pods.clone().any(|uri| uri.contains("labelSelector")));
    fake.forbid("list", "endpointslices");
    let told = load(&connection(&fake)).await.unwrap_err().to_string();
    for word in ["https://10.0.0.1", "list endpointslices", "\"discovery.k8s.io\"", "grant"] {
        assert!(told.contains(word), "{word} in {told}");
    }
}

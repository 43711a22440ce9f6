//! A change tells a proxy, and drains in it, no more than it must.

use it::busy::{Busy, Speaks};
use it::world::Object;

use crate::storm::{HTTP, MIXED, Shape, TCP, TCP_TWICE, service};

const CDS: (&str, u64) = ("cluster_manager.cds.update_success", 1);
const CDS_RELOAD: (&str, u64) = ("cluster_manager.cds.config_reload", 1);
const MODIFIED: (&str, u64) = ("cluster_manager.cluster_modified", 1);
/// One response of virtual hosts, and the table that is made of it.
const HOSTS: [(&str, u64); 3] = [
    ("http.cap_http.rds.vhds.cap_http.busy.update_success", 1),
    ("http.cap_http.rds.vhds.cap_http.busy.config_reload", 1),
    ("http.cap_http.rds.cap_http.busy.config_reload", 1),
];
/// One response with the listener, which goes on with other chains.
const CHAINS: [(&str, u64); 3] = [
    ("listener_manager.lds.update_success", 1),
    ("listener_manager.listener_in_place_updated", 1),
    ("listener_manager.listener_modified", 1),
];

/// Clusters that come, and that go.
fn added(count: u64) -> (&'static str, u64) {
    ("cluster_manager.cluster_added", count)
}
fn removed(count: u64) -> (&'static str, u64) {
    ("cluster_manager.cluster_removed", count)
}
/// Chains that drain. All else goes on.
fn drained(count: u64) -> (&'static str, u64) {
    ("listener_manager.total_filter_chains_draining", count)
}

const H2C: &[(&str, u16, &str)] = &[("web", 80, "kubernetes.io/h2c")];

/// In words; a file; what is in it now, if it is there; and what the proxy is told.
type Row<'a> = (&'a str, &'a str, Option<Vec<Object>>, Vec<(&'a str, u64)>);

#[tokio::test]
async fn a_change_tells_and_drains_no_more_than_it_must() {
    let busy = Busy::start(&[Speaks::Delta]).await.unwrap();
    let loads = busy.loads().await.unwrap();
    let caller = &busy.callers[0];
    let eds = |cluster: &str| format!("cluster.{cluster}.update_success");
    let web = eds("http_web.other.aether.internal");
    let web_raw = eds("http_web.other.aether.internal_9000");
    let web_tcp =
        [80, 9000, 18081].map(|port| eds(&format!("tcp_web.other.aether.internal_{port}")));
    let raw = [5432, 5433, 18081].map(|port| eds(&format!("tcp_raw.other.aether.internal_{port}")));
    let rival = eds("http_svc-2.elder.aether.internal");

    let put =
        |name, shape: Shape<'_>, endpoints: &[u8]| Some(service("other", name, shape, endpoints));
    let old = |objects: Vec<Object>| -> Vec<Object> {
        let age = |o: Object| o.with(&["metadata", "creationTimestamp"], "2020-01-01T00:00:00Z");
        objects.into_iter().map(age).collect()
    };
    let reversed = |mut objects: Vec<Object>| -> Option<Vec<Object>> {
        objects.reverse();
        Some(objects)
    };
    let rows: [Row<'_>; 14] = [
        (
            "HTTP added",
            "web",
            put("web", (1, HTTP), &[1]),
            [&[CDS, CDS_RELOAD, added(1), (&web, 1)][..], &HOSTS].concat(),
        ),
        ("another endpoint", "web", put("web", (1, HTTP), &[2]), vec![(&web, 1)]),
        ("another order", "web", reversed(service("other", "web", (1, HTTP), &[2])), vec![]),
        (
            "TCP added",
            "raw",
            put("raw", (2, TCP), &[1]),
            [&[CDS, CDS_RELOAD, added(2), (&raw[0], 1), (&raw[2], 1)][..], &CHAINS].concat(),
        ),
        (
            "a further port",
            "raw",
            put("raw", (2, TCP_TWICE), &[1]),
            vec![CDS, CDS_RELOAD, added(1), (&raw[1], 1)],
        ),
        ("a port less", "raw", put("raw", (2, TCP), &[1]), vec![CDS, removed(1)]),
        (
            "another ClusterIP, TCP",
            "raw",
            put("raw", (3, TCP), &[1]),
            [&[drained(1)][..], &CHAINS].concat(),
        ),
        ("another ClusterIP, HTTP", "web", put("web", (4, HTTP), &[2]), HOSTS.to_vec()),
        (
            "HTTP/2 now",
            "web",
            put("web", (4, H2C), &[2]),
            vec![CDS, CDS_RELOAD, MODIFIED, (&web, 1)],
        ),
        (
            "HTTP/1.1 again, and TCP beside it",
            "web",
            put("web", (4, MIXED), &[2]),
            [
                &[CDS, CDS_RELOAD, MODIFIED, added(4), (&web, 1), (&web_raw, 1)][..],
                &web_tcp.each_ref().map(|name| (name.as_str(), 1)),
                &CHAINS,
                &HOSTS,
            ]
            .concat(),
        ),
        (
            "a short name taken from a service that is called",
            "rival",
            Some(old(service("elder", "svc-2", (5, HTTP), &[3]))),
            [&[CDS, CDS_RELOAD, added(1), (&rival, 1)][..], &HOSTS].concat(),
        ),
        ("TCP removed", "raw", None, [&[CDS, removed(2), drained(1)][..], &CHAINS].concat()),
        (
            "HTTP and TCP removed",
            "web",
            None,
            [&[CDS, removed(5), drained(3)][..], &CHAINS, &HOSTS].concat(),
        ),
        ("the rival removed", "rival", None, [&[CDS, removed(1)][..], &HOSTS].concat()),
    ];
    let mut told = caller.told().await.unwrap();
    for (what, file, objects, expected) in rows {
        match objects {
            Some(objects) => busy.world.put(file, &objects).unwrap(),
            None => busy.world.remove(file).unwrap(),
        }
        let now = caller.is_told(&told, &expected).await;
        told = now.unwrap_or_else(|error| panic!("{what}: {error:#}"));
    }
    // And nothing else comes later.
    busy.world.put("web", &service("other", "web", (1, HTTP), &[1])).unwrap();
    let last = [&[CDS, CDS_RELOAD, added(1), (&web, 1)][..], &HOSTS].concat();
    caller.is_told(&told, &last).await.unwrap();
    busy.flawless(loads).await.unwrap();
}

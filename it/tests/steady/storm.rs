//! Two hundred changes of services that nobody in these tests calls.

use std::net::IpAddr;

use it::busy::Busy;
use it::world::Object;

/// How often each service lives through its whole life.
const LIVES: u8 = 10;
/// A ClusterIP's last part, and the ports behind it: name, number, protocol.
pub(crate) type Shape<'a> = (u8, &'a [(&'a str, u16, &'a str)]);

pub(crate) const HTTP: &[(&str, u16, &str)] = &[("web", 80, "http")];
const H2C: &[(&str, u16, &str)] = &[("web", 80, "kubernetes.io/h2c")];
pub(crate) const TCP: &[(&str, u16, &str)] = &[("raw", 5432, "postgres")];
pub(crate) const TCP_TWICE: &[(&str, u16, &str)] =
    &[("raw", 5432, "postgres"), ("more", 5433, "postgres")];
pub(crate) const MIXED: &[(&str, u16, &str)] = &[("web", 80, "http"), ("raw", 9000, "echo")];

/// One change: a file that is written, or removed.
pub(crate) struct Change {
    /// In words, for a failure.
    pub(crate) what: String,
    file: String,
    objects: Option<Vec<Object>>,
    /// Whether proxies are told anything of it.
    pub(crate) told: bool,
}

impl Change {
    /// Makes it.
    pub(crate) fn apply(&self, busy: &Busy) -> anyhow::Result<()> {
        match &self.objects {
            Some(objects) => busy.world.put(&self.file, objects),
            None => busy.world.remove(&self.file),
        }
    }
}

/// All of them, in their order.
pub(crate) fn changes() -> Vec<Change> {
    (0..LIVES).flat_map(life).collect()
}

/// The life of an HTTP, a TCP and a mixed service, of rivals for their names, and of rivals for the names of a service
/// that is called.
fn life(k: u8) -> Vec<Change> {
    let (web, raw, both) = (format!("web-{k}"), format!("raw-{k}"), format!("both-{k}"));
    let at = |n: u8| k * 10 + n;
    let put = |what: &str, name: &str, shape: Shape<'_>, endpoints: &[u8]| Change {
        what: format!("{name}: {what}"),
        file: format!("other-{name}"),
        objects: Some(service("other", name, shape, endpoints)),
        told: true,
    };
    let gone = |file: &str| Change {
        what: format!("{file}: removed"),
        file: file.to_owned(),
        objects: None,
        told: true,
    };
    let with = |change: Change, service: &dyn Fn(Object) -> Object| Change {
        objects: change.objects.map(|objects| {
            objects
                .into_iter()
                .enumerate()
                .map(|(n, o)| if n == 0 { service(o) } else { o })
                .collect()
        }),
        ..change
    };
    let named = |name: String| move |o: Object| o.annotation("aether.io/service", &name);
    let old = |o: Object| o.with(&["metadata", "creationTimestamp"], "2020-01-01T00:00:00Z");
    let rival = |name: &str, n: u8| Change {
        what: format!("an older {name} in another namespace"),
        file: format!("rival-{name}"),
        objects: Some(service("elder", name, (at(n), HTTP), &[1])),
        told: true,
    };
    let squatter = |what: &str| put(what, "svc-1", (at(7), MIXED), &[3]);
    vec![
        put("added, HTTP", &web, (at(1), HTTP), &[1]),
        put("added, TCP", &raw, (at(2), TCP), &[1]),
        put("added, mixed", &both, (at(3), MIXED), &[1]),
        put("a second endpoint", &web, (at(1), HTTP), &[1, 2]),
        put("another endpoint", &raw, (at(2), TCP), &[2]),
        put("a further port", &raw, (at(2), TCP_TWICE), &[2]),
        put("HTTP/2 now", &web, (at(1), H2C), &[1, 2]),
        put("TCP now", &web, (at(1), TCP), &[1, 2]),
        put("HTTP now", &raw, (at(2), HTTP), &[2]),
        put("another ClusterIP", &both, (at(4), MIXED), &[1]),
        with(put("renamed", &raw, (at(2), HTTP), &[2]), &named(format!("cooked-{k}"))),
        with(put("renamed", &both, (at(4), MIXED), &[1]), &named(format!("all-{k}"))),
        with(rival(&format!("all-{k}"), 5), &old),
        gone(&format!("rival-all-{k}")),
        Change {
            told: false,
            ..with(put("claims a name", "twin", (at(6), HTTP), &[4]), &named(web.clone()))
        },
        squatter("added, younger than the one that is called"),
        with(squatter("older now, and takes the short name"), &old),
        gone("other-svc-1"),
        gone(&format!("other-{both}")),
        gone(&format!("other-{raw}")),
    ]
}

/// A Service and its slice, whose pods serve the very ports.
pub(crate) fn service(
    namespace: &str,
    name: &str,
    (ip, ports): Shape<'_>,
    endpoints: &[u8],
) -> Vec<Object> {
    let mut service = Object::service(namespace, name, &format!("10.96.9.{ip}"));
    let mut slice = Object::slice(namespace, name, "1", false);
    for (name, number, protocol) in ports {
        service = service.port(name, *number, protocol);
        slice = slice.target(name, *number);
    }
    for endpoint in endpoints {
        slice = slice.endpoint(IpAddr::from([10, 244, 200, *endpoint]));
    }
    vec![service, slice]
}

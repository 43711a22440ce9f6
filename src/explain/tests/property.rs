//! Whatever the mesh: what is told of a connection, decided from resources alone, is what the
//! contract's rules say of the objects, written down here a second time.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{end, evidence, node, pod, question, ready, slice};
use crate::explain::{Outcome, explain};
use crate::translate::CaptureMode::{self, RedirectAll, Scoped};

/// A Service of the world, as the rules look at it.
#[derive(Debug, Clone)]
struct Given {
    namespace: &'static str,
    name: String,
    ip: String,
    headless: bool,
    /// Number, and whether it is HTTP.
    ports: Vec<(u16, bool)>,
    /// Which of its pods is how: ready, terminating, neither.
    pods: Vec<u8>,
}

/// What the rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    NotCaptured,
    /// Key, port, endpoints.
    Service(String, u16, BTreeSet<SocketAddr>),
    Passthrough,
    NotFound,
    Closed,
}

impl Given {
    fn port(&self, number: u16) -> Option<&(u16, bool)> {
        self.ports.iter().find(|port| port.0 == number)
    }

    fn default_port(&self) -> u16 {
        self.port(18081).or(self.ports.first()).unwrap().0
    }

    fn to(&self, port: u16) -> Expected {
        let at = self.pods.iter().enumerate();
        let of = |kind: u8| {
            let those = at.clone().filter(|(_, one)| **one == kind);
            those.map(|(n, _)| self.endpoint(n, port)).collect::<BTreeSet<SocketAddr>>()
        };
        let fit = if of(0).is_empty() { of(1) } else { of(0) };
        Expected::Service(format!("{}/{}", self.namespace, self.name), port, fit)
    }

    fn endpoint(&self, n: usize, port: u16) -> SocketAddr {
        let last = self.ip.rsplit('.').next().unwrap_or("0").parse().unwrap_or(200);
        SocketAddr::from(([10, 244, last, u8::try_from(n).unwrap() + 1], port.wrapping_add(7)))
    }

    /// By authority.
    fn http(&self, port: u16, mode: CaptureMode) -> Expected {
        match port {
            port if self.port(port).is_some() => self.to(port),
            80 | 18081 => self.to(self.default_port()),
            _ if self.headless && mode == RedirectAll => Expected::Passthrough,
            _ => Expected::NotFound,
        }
    }

    /// By address.
    fn tcp(&self, port: u16) -> Expected {
        match port {
            port if self.port(port).is_some() => self.to(port),
            18081 => self.to(self.default_port()),
            _ => Expected::Closed,
        }
    }

    fn expected(&self, port: u16, http: bool, mode: CaptureMode) -> Expected {
        let has_http = self.ports.iter().any(|port| port.1);
        let has_tcp = self.ports.iter().any(|port| !port.1);
        if mode == Scoped {
            let default_http = self.port(self.default_port()).unwrap().1;
            return match (port, http) {
                (18081, _) if !default_http && !self.headless => self.to(self.default_port()),
                (18081, true) if has_http => self.to(self.default_port()),
                (18081, true) => Expected::NotFound,
                (18081, false) => Expected::Closed,
                _ => Expected::NotCaptured,
            };
        }
        let recognised = http && port != 3306;
        match (recognised, self.headless) {
            (true, _) if has_http => self.http(port, mode),
            (_, false) if has_tcp => self.tcp(port),
            _ => Expected::Passthrough,
        }
    }

    fn objects(&self) -> Vec<Value> {
        let ports: Vec<_> = self
            .ports
            .iter()
            .map(|(number, http)| {
                let protocol = if *http { "http" } else { "tcp" };
                json!({"name": format!("p{number}"), "port": number, "appProtocol": protocol})
            })
            .collect();
        let ip = if self.headless { "None" } else { self.ip.as_str() };
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": self.namespace, "name": self.name,
                         "labels": {"aether.io/mesh-service": "true"}},
            "spec": {"clusterIP": ip, "clusterIPs": [ip], "selector": {"a": "b"}, "ports": ports},
        });
        let mut objects = vec![service];
        let names: Vec<_> = self.ports.iter().map(|(n, _)| format!("p{n}")).collect();
        let ports: Vec<_> = names
            .iter()
            .map(String::as_str)
            .zip(self.ports.iter().map(|(n, _)| n.wrapping_add(7)))
            .collect();
        let addresses: Vec<_> =
            (0..self.pods.len()).map(|n| self.endpoint(n, 0).ip().to_string()).collect();
        let endpoints: Vec<_> = addresses
            .iter()
            .zip(&self.pods)
            .map(|(ip, kind)| {
                let conditions = match kind {
                    0 => ready(),
                    1 => json!({"ready": false, "serving": true, "terminating": true}),
                    _ => json!({"ready": false}),
                };
                (ip.as_str(), if kind % 2 == 0 { "n1" } else { "n2" }, conditions)
            })
            .collect();
        objects.push(slice((self.namespace, &self.name), &ports, &endpoints));
        objects
    }
}

const PORTS: [u16; 6] = [80, 81, 443, 3306, 9000, 18081];

fn services() -> impl Strategy<Value = Vec<Given>> {
    let ports = proptest::sample::subsequence(PORTS.to_vec(), 1..4).prop_shuffle();
    let one = (any::<[bool; 4]>(), ports, proptest::collection::vec(0..3u8, 0..4), 0..5u8);
    proptest::collection::vec(one, 1..6).prop_map(|all| {
        let given = all.into_iter().enumerate().map(|(n, (http, ports, pods, headless))| Given {
            namespace: if n % 2 == 0 { "shop" } else { "pay" },
            // Two of them may bear one name in two namespaces.
            name: format!("s{}", n / 2),
            ip: format!("10.96.0.{}", n + 1),
            headless: headless == 0,
            ports: ports.into_iter().zip(http.into_iter().cycle()).collect(),
            pods,
        });
        given.collect()
    })
}

fn got(outcome: &Outcome) -> Expected {
    match outcome {
        Outcome::NotCaptured { .. } => Expected::NotCaptured,
        Outcome::Service { service, port, endpoints, answer, .. } => {
            assert_eq!(answer.is_some(), endpoints.is_empty());
            Expected::Service(
                service.clone(),
                *port,
                endpoints.iter().map(|one| one.address).collect(),
            )
        }
        Outcome::Passthrough { .. } => Expected::Passthrough,
        Outcome::Answered { status, .. } => {
            assert_eq!(*status, 404);
            Expected::NotFound
        }
        Outcome::Closed { .. } => Expected::Closed,
        Outcome::Unresolved { why } => panic!("every name of these is one: {why}"),
    }
}

/// The spellings by which a pod of `shop` reaches a Service, each as a host.
fn hosts(one: &Given) -> Vec<String> {
    let (name, namespace) = (&one.name, one.namespace);
    let mut hosts = vec![
        format!("{name}.{namespace}"),
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local."),
    ];
    if namespace == "shop" {
        hosts.push(name.clone());
    }
    if !one.headless {
        hosts.extend([one.ip.clone(), format!("{name}.{namespace}.aether.internal")]);
    }
    hosts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_told_is_what_the_rules_say(services in services(), scoped in any::<bool>()) {
        let mode = if scoped { Scoped } else { RedirectAll };
        let mut objects = vec![node("n1", "eu-a"), node("n2", "eu-b"), pod("shop", "front", json!({}))];
        objects.extend(services.iter().flat_map(Given::objects));
        let known = evidence(&objects, &question("shop/front any"), mode);
        for one in &services {
            for (at, host) in hosts(one).into_iter().enumerate() {
                // Each spelling with some of the ports: all together would take too long.
                for port in PORTS.iter().skip(at % 2).step_by(2).chain(&[7]) {
                    for speaks in ["http", "tls", "tcp"] {
                        let asked = format!("shop/front {host}:{port} {speaks}");
                        let told = explain(&question(&asked), &known).unwrap();
                        let expected = one.expected(*port, speaks == "http", mode);
                        prop_assert_eq!(got(end(&told)), expected, "{} of {:?}: {}", asked, one, told.verdict);
                    }
                }
            }
        }
    }
}

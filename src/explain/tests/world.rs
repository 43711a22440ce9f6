//! A world of objects, and what is asked of it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::capture::Reconciler;
use crate::explain::{Evidence, Explanation, Outcome, Question, explain};
use crate::index::tests::{annotated, merge, put, service};
use crate::model::{MeshNames, Pins};
use crate::source::Update;
use crate::translate::{CaptureMode, Settings};
use crate::{index, translate};

/// A managed pod on the node `n1`; `more` is merged over it.
pub fn pod(namespace: &str, name: &str, more: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"aether.io/managed": "true"}},
        "spec": {"nodeName": "n1", "serviceAccountName": "front"},
        "status": {"phase": "Running", "podIP": "10.244.0.9"},
    });
    merge(&mut pod, more);
    pod
}

/// A node in a zone.
pub fn node(name: &str, zone: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": zone,
        }},
    })
}

/// A slice of a Service: the ports by name, and endpoints by address, node and conditions.
pub fn slice(key: (&str, &str), ports: &[(&str, u16)], endpoints: &[(&str, &str, Value)]) -> Value {
    let ports: Vec<_> =
        ports.iter().map(|(name, port)| json!({"name": name, "port": port})).collect();
    let endpoints: Vec<_> = endpoints
        .iter()
        .map(|(ip, node, conditions)| {
            let pod = format!("{}-{}", key.1, ip.rsplit('.').next().unwrap());
            json!({"addresses": [ip], "nodeName": node, "conditions": conditions,
                   "targetRef": {"kind": "Pod", "name": pod}})
        })
        .collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"namespace": key.0, "name": format!("{}-1", key.1),
                     "labels": {"kubernetes.io/service-name": key.1}},
        "addressType": "IPv4", "ports": ports, "endpoints": endpoints,
    })
}

/// Conditions.
pub fn ready() -> Value {
    json!({"ready": true})
}

/// The spec of a Service with an address and ports: name, number, `appProtocol`.
pub fn spec(ip: &str, ports: &[(&str, u16, Option<&str>)]) -> Value {
    let ports: Vec<_> = ports
        .iter()
        .map(|(name, port, protocol)| json!({"name": name, "port": port, "appProtocol": protocol}))
        .collect();
    json!({"spec": {"clusterIP": ip, "clusterIPs": [ip], "ports": ports}})
}

/// The world that most tests ask about.
pub fn shop() -> Vec<Value> {
    let http: &[(&str, u16, Option<&str>)] = &[("web", 80, Some("http"))];
    let unlabelled = json!({"metadata": {"labels": {"aether.io/mesh-service": "no"}}});
    let dated = |when: &str| json!({"metadata": {"creationTimestamp": when}});
    let mut web = service(
        "shop",
        "web",
        spec("10.96.0.1", &[("web", 80, Some("http")), ("more", 8081, None)]),
    );
    merge(&mut web, dated("2026-01-01T00:00:00Z"));
    let mut others = service("pay", "web", spec("10.96.0.2", http));
    merge(&mut others, dated("2026-02-01T00:00:00Z"));
    let mut legacy = service("shop", "legacy", spec("10.96.0.6", http));
    merge(&mut legacy, unlabelled);
    let mut broken = service("shop", "broken", spec("10.96.0.7", http));
    merge(&mut broken, annotated("aether.io/port", "0"));
    let mut external = service("shop", "external", json!({}));
    external["spec"] = json!({"type": "ExternalName", "externalName": "db.example.com"});
    let mut cased = service("shop", "cased", spec("10.96.0.9", &[("db", 5000, Some("http"))]));
    merge(&mut cased, annotated("aether.io/app-protocol", "redis"));
    let mut local = service("shop", "local", spec("10.96.0.10", http));
    merge(&mut local, json!({"spec": {"internalTrafficPolicy": "Local"}}));
    let draining = json!({"ready": false, "serving": true, "terminating": true});
    let unready = json!({"ready": false});
    vec![
        node("n1", "eu-a"),
        node("n2", "eu-b"),
        pod("shop", "front", json!({})),
        pod("shop", "out", json!({"metadata": {"labels": {"aether.io/managed": "false"}}})),
        pod("kube-system", "dns", json!({})),
        pod(
            "shop",
            "own",
            json!({"metadata": {"annotations": {
                "capture.aether.io/exclude-outbound-ports": "6000-6010,7000",
                "capture.aether.io/exclude-outbound-ip-ranges": "192.0.2.0/24",
            }}}),
        ),
        pod(
            "shop",
            "wide",
            json!({"metadata": {"annotations": {"capture.aether.io/redirect-all": "false"}}}),
        ),
        pod("shop", "hosted", json!({"spec": {"hostNetwork": true}})),
        web,
        slice(
            ("shop", "web"),
            &[("web", 8080), ("more", 8081)],
            &[
                ("10.244.0.1", "n1", ready()),
                ("10.244.0.2", "n2", ready()),
                ("10.244.0.3", "n2", unready.clone()),
            ],
        ),
        others,
        slice(("pay", "web"), &[("web", 8080)], &[("10.244.0.4", "n1", ready())]),
        service("shop", "ledger", spec("10.96.0.3", &[("db", 3306, Some("mysql"))])),
        slice(("shop", "ledger"), &[("db", 3306)], &[("10.244.0.5", "n1", ready())]),
        service(
            "shop",
            "mixed",
            spec("10.96.0.4", &[("web", 80, Some("grpc")), ("db", 9000, Some("tcp"))]),
        ),
        slice(("shop", "mixed"), &[("web", 8080), ("db", 9000)], &[("10.244.0.6", "n1", draining)]),
        service("shop", "peers", spec("None", &[("web", 8080, Some("http"))])),
        slice(("shop", "peers"), &[("web", 8080)], &[("10.244.0.7", "n1", ready())]),
        service("shop", "empty", spec("10.96.0.5", http)),
        slice(("shop", "empty"), &[("web", 8080)], &[("10.244.0.8", "n1", unready)]),
        legacy,
        broken,
        external,
        cased,
        local,
        slice(("shop", "local"), &[("web", 8080)], &[("10.244.0.9", "n2", ready())]),
    ]
}

/// What is known of a world.
pub fn evidence(objects: &[Value], question: &Question, mode: CaptureMode) -> Evidence {
    evidence_with(objects, question, &translate::Settings { mode, ..Settings::default() }, None)
}

/// What is known of a world, with settings and pins of its own.
pub fn evidence_with(
    objects: &[Value],
    question: &Question,
    settings: &Settings,
    pins: Option<Pins>,
) -> Evidence {
    let ports = settings.server_first_ports.clone();
    let of_index = index::Settings::new(MeshNames::default(), ["spire-system"], ports);
    let mut reconciler = Reconciler::new(of_index, settings.clone());
    reconciler.pinned(pins.map(Arc::new));
    let changes = objects.iter().map(put).collect();
    reconciler.apply(Update { changes, findings: Vec::new() });
    let outcome = reconciler.reconcile();
    let projection = reconciler.projection().unwrap();
    let since = Some("2026-11-30T12:00:00Z".parse().unwrap());
    let findings = outcome.appeared.iter().map(|one| (one.clone(), since)).collect();
    let snapshot = outcome.snapshot.unwrap();
    Evidence::gather(question, settings, reconciler.index(), projection, &snapshot, findings)
}

/// A question, as in `shop/front web:80 http`; without the last word all are told.
pub fn question(text: &str) -> Question {
    let mut words = text.split(' ');
    let mut next = || words.next();
    let pod = next().unwrap().parse().unwrap();
    let destination = next().unwrap().parse().unwrap();
    Question { pod, destination, speaks: next().map(|word| word.parse().unwrap()) }
}

/// The answer in a world.
pub fn ask(objects: &[Value], text: &str, mode: CaptureMode) -> Explanation {
    let question = question(text);
    explain(&question, &evidence(objects, &question, mode)).unwrap()
}

/// The one end of a connection.
pub fn end(explanation: &Explanation) -> &Outcome {
    let [path] = explanation.paths.as_slice() else { panic!("{:?}", explanation.paths) };
    &path.outcome
}

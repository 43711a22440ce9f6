//! Random histories: no user's Service is ever changed, what should exist does, and writing ends.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::plane::Plane;
use super::server::{pod, service};
use crate::index::generated;
use crate::model::{ServiceKey, is_dns_label};
use crate::random::Random;

const HOUR: Duration = Duration::from_hours(1);
const NAMESPACES: [&str; 6] = ["shop", "shop", "shop", "shop", "pay", "kube-system"];
const ACCOUNTS: [&str; 7] = ["web", "web", "web", "cart", "default", "we.b", "1st"];

fn key(random: &mut Random) -> ServiceKey {
    ServiceKey::new(*random.of(&NAMESPACES[..]), *random.of(&ACCOUNTS))
}

/// One thing happens.
async fn happens(plane: &mut Plane, random: &mut Random) {
    let key = key(random);
    let name = ServiceKey::new(key.namespace.clone(), format!("p{}", random.below(6)));
    let server = |plane: &Plane, act: &mut dyn FnMut(&mut super::server::Server)| {
        plane.fake.with(|state| act(&mut state.server));
    };
    match random.below(16) {
        0..=4 => {
            let mut pod = pod(&key.name, &annotations(random));
            pod["status"]["phase"] =
                (*random.of(&["Running", "Running", "Pending", "Succeeded"])).into();
            if random.chance(10) {
                pod["spec"]["hostNetwork"] = true.into();
            }
            if random.chance(10) {
                pod["metadata"]["labels"]["aether.io/managed"] = "false".into();
            }
            server(plane, &mut |server| server.put_pod(&name, pod.clone()));
        }
        5 => server(plane, &mut |server| server.remove_pod(&name)),
        6 => {
            let there = random.chance(60);
            server(plane, &mut |server| server.account(&key, there));
        }
        7 => {
            // A user's own: it may claim another name, or copy what ours look like.
            let mut marks = json!({});
            if random.chance(40) {
                marks["aether.io/service"] = (*random.of(&ACCOUNTS)).into();
            }
            if random.chance(30) {
                marks["aether.io/generated-for"] = key.to_string().into();
            }
            let service = service(&key, random.chance(60), &marks);
            server(plane, &mut |server| {
                if !server.services.contains_key(&key) {
                    server.user_puts(&key, service.clone());
                }
            });
        }
        8 => {
            let key = existing(plane, random).unwrap_or(key);
            server(plane, &mut |server| server.removes(&key));
        }
        9..=11 => {
            let key = existing(plane, random).unwrap_or(key);
            let drift = drift(random);
            server(plane, &mut |server| server.user_edits(&key, |service| merge(service, &drift)));
        }
        12 => plane.new_leader(),
        13 => plane.pass(Duration::from_secs(random.below(150))).await,
        14 => plane.pass(Duration::from_secs(random.below(9000))).await,
        _ => {}
    }
}

/// A Service that is there, whoever made it.
fn existing(plane: &Plane, random: &mut Random) -> Option<ServiceKey> {
    let keys: Vec<_> = plane.fake.with(|state| state.server.services.keys().cloned().collect());
    (!keys.is_empty()).then(|| random.of(&keys).clone())
}

fn annotations(random: &mut Random) -> Value {
    let mut all = json!({});
    if random.chance(40) {
        all["endpoint.aether.io/port"] = (*random.of(&["9000", "9001", "no", "0"])).into();
    }
    if random.chance(40) {
        all["endpoint.aether.io/protocol"] = (*random.of(&["grpc", "h2", "redis", "HTTP"])).into();
    }
    all
}

/// What users do to Services, ours among them.
fn drift(random: &mut Random) -> Value {
    let all = [
        json!({ "metadata": { "labels": { "aether.io/mesh-service": "false" } } }),
        json!({ "metadata": { "annotations": { "aether.io/generated-for": null } } }),
        json!({ "metadata": { "annotations": { "aether.io/port": "1" } } }),
        json!({ "metadata": { "annotations": { "aether.io/port": "nonsense" } } }),
        json!({ "metadata": { "annotations": { "aether.io/service": "Wrong" } } }),
        json!({ "metadata": { "annotations": { "aether.io/app-protocol": "redis" } } }),
        json!({ "metadata": { "labels": { "team": "x" } } }),
        json!({ "spec": { "ports": [{ "port": 80 }] } }),
        json!({ "spec": { "selector": { "app": "x" } } }),
        json!({ "spec": { "type": "ExternalName", "externalName": "db.example.com" } }),
        json!({ "spec": { "type": "NodePort" } }),
        json!({ "spec": { "future": 1 } }),
    ];
    random.of(&all).clone()
}

fn merge(base: &mut Value, over: &Value) {
    let Value::Object(over) = over else { return *base = over.clone() };
    for (key, value) in over {
        match value {
            Value::Null => {
                base.as_object_mut().map(|base| base.remove(key));
            }
            Value::Object(_) => {
                if !base[key].is_object() {
                    base[key] = json!({});
                }
                merge(&mut base[key], value);
            }
            value => base[key] = value.clone(),
        }
    }
}

/// What the pods of each account want, told from the objects alone: port and protocol of the oldest.
fn wanted(plane: &Plane) -> BTreeMap<ServiceKey, (String, Option<String>)> {
    plane.fake.with(|state| {
        let mut pods: Vec<_> = state.server.pods.iter().collect();
        pods.sort_by_key(|(key, pod)| {
            (pod["metadata"]["creationTimestamp"].to_string(), key.name.clone())
        });
        let mut wanted = BTreeMap::new();
        for (pod, value) in pods {
            let says = |key| value["metadata"]["annotations"].get(key).and_then(Value::as_str);
            let port = says("endpoint.aether.io/port").filter(|port| port.starts_with('9'));
            let account = value["spec"]["serviceAccountName"].as_str().unwrap();
            let counts = value["metadata"]["labels"]["aether.io/managed"] == "true"
                && value["status"]["phase"] == "Running"
                && value["spec"].get("hostNetwork").is_none()
                && &*pod.namespace != "kube-system"
                && (account != "default" || port.is_some());
            if counts {
                let protocol = says("endpoint.aether.io/protocol").map(str::to_owned);
                wanted
                    .entry(ServiceKey::new(pod.namespace.clone(), account))
                    .or_insert((port.unwrap_or("8080").to_owned(), protocol));
            }
        }
        wanted
    })
}

/// Whether a user's Service claims a key, or has its name.
fn taken(plane: &Plane, key: &ServiceKey) -> bool {
    plane.fake.with(|state| {
        state.server.services.iter().any(|(of, service)| {
            let typed = serde_json::from_value(service.clone()).unwrap();
            of.namespace == key.namespace
                && generated(&typed).is_none()
                && (of == key
                    || (service["metadata"]["labels"]["aether.io/mesh-service"] == "true"
                        && crate::index::mesh_name_of(&typed) == Some(key.name.clone())))
        })
    })
}

/// Everything that should exist is there in its form; and nothing else that is ours, once what
/// kept it is over.
fn right(plane: &Plane, seed: u64, nothing_else: bool) {
    let wanted = wanted(plane);
    for (key, (port, protocol)) in &wanted {
        if !is_dns_label(&key.name) || key.name.starts_with('1') || taken(plane, key) {
            continue;
        }
        let service = plane.fake.with(|state| state.server.services.get(key).cloned());
        let service = service.unwrap_or_else(|| panic!("seed {seed}: no Service {key}"));
        let of = generated(&serde_json::from_value(service.clone()).unwrap())
            .unwrap_or_else(|| panic!("seed {seed}: {service}"));
        assert!(of.plain, "seed {seed}: {service}");
        let said = (of.mesh_name.as_deref(), of.port.as_deref(), of.protocol.as_deref());
        assert_eq!(
            said,
            (Some(&*key.name), Some(port.as_str()), protocol.as_deref()),
            "seed {seed}"
        );
    }
    let ours = plane.fake.with(|state| {
        let ours = state.server.services.iter().filter(|(_, service)| {
            generated(&serde_json::from_value((*service).clone()).unwrap()).is_some()
        });
        ours.map(|(key, _)| key.clone()).collect::<Vec<_>>()
    });
    for key in ours {
        assert!(&*key.namespace != "kube-system", "seed {seed}: {key}");
        let there = plane.fake.with(|state| {
            let mut pods = state.server.pods.iter();
            pods.any(|(pod, value)| {
                pod.namespace == key.namespace && value["spec"]["serviceAccountName"] == *key.name
            })
        });
        assert!(!nothing_else || there, "seed {seed}: {key} has no use");
        assert!(!nothing_else || !taken(plane, &key), "seed {seed}: {key} is a user's");
    }
}

async fn history(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let mut plane = Plane::new(seed);
    // A day has 24 hours more than a test has patience for.
    plane.periods.idle = HOUR * 2;
    plane.fake.with(|state| {
        state.lost = 10 * (seed % 3);
        state.interferes = 10 * (seed / 3 % 3);
    });
    for _ in 0..20 + random.below(30) {
        happens(&mut plane, &mut random).await;
        // The watches may lag behind.
        plane.hears(usize::try_from(random.below(6)).unwrap());
        plane.work().await;
        plane.now = plane.now + Duration::from_millis(random.below(3000));
    }
    plane.fake.with(|state| {
        (state.lost, state.interferes) = (0, 0);
    });
    plane.pass(Duration::from_secs(1300)).await;
    right(&plane, seed, false);
    plane.pass(HOUR * 3).await;
    right(&plane, seed, true);
    let writes = plane.writes();
    plane.pass(HOUR).await;
    plane.new_leader();
    plane.pass(HOUR).await;
    assert_eq!(plane.writes(), writes, "seed {seed}: it goes on writing");
    plane.fake.with(|state| {
        assert!(state.crimes.is_empty(), "seed {seed}: written, but not ours: {:?}", state.crimes);
    });
    writes
}

#[tokio::test]
async fn users_objects_stay_what_should_exist_does_and_writing_ends() {
    let mut writes = 0;
    for seed in 0..2000 {
        writes += history(seed).await;
    }
    assert!(writes > 6000, "hardly anything happened: {writes} writes");
}

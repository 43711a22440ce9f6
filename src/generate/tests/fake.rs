//! An API server as the generator sees it: conflicts, preconditions, lost answers, and users who
//! change things between a look and a write.

use std::sync::Mutex;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::server::{Server, service};
use crate::api::ApiError;
use crate::generate::Services;
use crate::model::ServiceKey;
use crate::random::Random;

pub struct Fake(pub Mutex<State>);

pub struct State {
    pub server: Server,
    pub random: Random,
    /// In percent: an answer is lost; a user interferes after a look.
    pub lost: u64,
    pub interferes: u64,
    /// Every write that was stored.
    pub writes: Vec<String>,
    /// Every write that reached somebody else's Service.
    pub crimes: Vec<String>,
}

impl Fake {
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(State {
            server: Server::default(),
            random: Random::new(seed),
            lost: 0,
            interferes: 0,
            writes: Vec::new(),
            crimes: Vec::new(),
        }))
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }
}

/// Told from here, not by the code under test.
fn bears_our_marks(service: &Value) -> bool {
    let meta = &service["metadata"];
    let name = format!(
        "{}/{}",
        meta["namespace"].as_str().unwrap_or_default(),
        meta["name"].as_str().unwrap_or_default()
    );
    meta["labels"]["aether.io/mesh-service"] == "true"
        && meta["annotations"]["aether.io/generated-for"] == name.as_str()
        && meta["managedFields"].to_string().contains("\"aether\"")
}

impl State {
    /// A write: it may be lost on the way there, or its answer on the way back.
    fn write(
        &mut self,
        what: String,
        store: impl FnOnce(&mut Server) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let lost = self.random.chance(self.lost);
        if lost && self.random.chance(50) {
            return Err(ApiError::Failed("the request was lost".into()));
        }
        store(&mut self.server)?;
        self.writes.push(what);
        if lost { Err(ApiError::Failed("the answer was lost".into())) } else { Ok(()) }
    }

    /// Looks whether a write is to be stored, and whether it is a crime.
    fn touches(&mut self, key: &ServiceKey, uid: &Value, version: &Value) -> Result<(), ApiError> {
        let Some(current) = self.server.services.get(key) else {
            return Err(ApiError::Overtaken("not found".into()));
        };
        let meta = &current["metadata"];
        if meta["uid"] != *uid || meta["resourceVersion"] != *version {
            return Err(ApiError::Overtaken("the object has been modified".into()));
        }
        let of_user = self.server.users.contains(uid.as_str().unwrap_or_default());
        if of_user || !bears_our_marks(current) {
            self.crimes.push(current.to_string());
        }
        Ok(())
    }

    /// What a user may do between a look and a write.
    fn interfere(&mut self, key: &ServiceKey) {
        match self.random.below(5) {
            0 => self.server.removes(key),
            1 => {
                // Made anew under the same name, with all that can be copied.
                let marks = json!({ "aether.io/generated-for": key.to_string() });
                self.server.removes(key);
                self.server.user_puts(key, service(key, true, &marks));
            }
            2 => self.server.user_edits(key, |service| {
                service["metadata"]["annotations"]["team"] = "x".into();
            }),
            3 if !self.server.services.contains_key(key) => {
                self.server.user_puts(key, service(key, false, &json!({})));
            }
            _ => {}
        }
    }
}

impl Services for Fake {
    async fn get(&self, key: &ServiceKey) -> Result<Option<Value>, ApiError> {
        self.with(|state| {
            if state.random.chance(state.lost) {
                return Err(ApiError::Failed("no answer".into()));
            }
            let service = state.server.services.get(key).cloned();
            if state.random.chance(state.interferes) {
                state.interfere(key);
            }
            Ok(service)
        })
    }

    async fn create(&self, key: &ServiceKey, service: &Value) -> Result<(), ApiError> {
        self.with(|state| {
            if key.name.starts_with(|first: char| first.is_ascii_digit()) {
                return Err(ApiError::Refused("a DNS-1035 label must start with a letter".into()));
            }
            state.write(format!("create {key}"), |server| {
                if server.services.contains_key(key) {
                    return Err(ApiError::Overtaken("already exists".into()));
                }
                server.store(key, service.clone(), "aether");
                Ok(())
            })
        })
    }

    async fn replace(&self, key: &ServiceKey, service: &Value) -> Result<(), ApiError> {
        self.with(|state| {
            let meta = &service["metadata"];
            state.touches(key, &meta["uid"], &meta["resourceVersion"])?;
            state.write(format!("replace {key}"), |server| {
                let (old, new) = (&server.services[key]["spec"], &service["spec"]);
                let kept = old["type"] == "ExternalName" || old["clusterIP"] == new["clusterIP"];
                if !kept {
                    return Err(ApiError::Refused("spec.clusterIP: field is immutable".into()));
                }
                server.store(key, service.clone(), "aether");
                Ok(())
            })
        })
    }

    async fn delete(&self, key: &ServiceKey, uid: &str, version: &str) -> Result<(), ApiError> {
        self.with(|state| {
            state.touches(key, &uid.into(), &version.into())?;
            state.write(format!("delete {key}"), |server| {
                server.removes(key);
                Ok(())
            })
        })
    }

    async fn pods(&self, key: &ServiceKey) -> Result<Vec<Pod>, ApiError> {
        self.with(|state| {
            let pods = state.server.pods.iter().filter(|(pod, value)| {
                pod.namespace == key.namespace
                    && value["spec"]["serviceAccountName"] == *key.name
                    && value["metadata"]["labels"]["aether.io/managed"] == "true"
            });
            Ok(pods.map(|(_, pod)| serde_json::from_value(pod.clone()).unwrap()).collect())
        })
    }

    async fn account(&self, key: &ServiceKey) -> Result<bool, ApiError> {
        Ok(self.with(|state| state.server.accounts.contains(key)))
    }
}

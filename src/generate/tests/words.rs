//! Words for single decisions: times, keys, and what happens in the namespace `shop`.

use std::time::Duration;

use serde_json::Value;

use super::plane::Plane;
use super::server::pod;
use crate::model::{Reason, ServiceKey};

pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3600);

pub fn key(name: &str) -> ServiceKey {
    ServiceKey::new("shop", name)
}

pub fn plane() -> Plane {
    Plane::new(1)
}

impl Plane {
    pub fn pod(&self, name: &str, account: &str, annotations: &Value) {
        self.fake.with(|state| state.server.put_pod(&key(name), pod(account, annotations)));
    }

    pub fn no_pod(&self, name: &str) {
        self.fake.with(|state| state.server.remove_pod(&key(name)));
    }

    pub fn account(&self, name: &str, there: bool) {
        self.fake.with(|state| state.server.account(&key(name), there));
    }

    pub fn service(&self, name: &str) -> Option<Value> {
        self.fake.with(|state| state.server.services.get(&key(name)).cloned())
    }

    /// The reasons and messages of what is found.
    pub async fn found(&mut self) -> Vec<(Reason, String)> {
        self.pass(SECOND).await;
        self.plan().findings.iter().map(|found| (found.reason, found.to_string())).collect()
    }
}

//! The generator as a task: it works while this process leads, and not a moment longer.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::fake::Fake;
use super::server::pod;
use crate::api::ApiError;
use crate::generate::{
    Generator, Observer, Operation, Outcome, Periods, Services, State, act, decide,
};
use crate::index::{Index, Settings};
use crate::leader::{Boot, Leadership, Permit};
use crate::model::{Finding, Registry, ServiceKey};

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<(Vec<Finding>, Vec<String>)>>);

impl Observer for Heard {
    fn findings(&mut self, findings: Vec<Finding>) {
        self.0.lock().unwrap().0 = findings;
    }

    fn did(&mut self, operation: &Operation, outcome: &Outcome) {
        self.0.lock().unwrap().1.push(format!("{} {}", operation.as_str(), outcome.as_str()));
    }
}

/// The same fake, shared with the test.
struct Shared(Arc<Fake>);

impl Services for Shared {
    async fn get(&self, key: &ServiceKey) -> Result<Option<Value>, ApiError> {
        self.0.get(key).await
    }
    async fn create(&self, key: &ServiceKey, service: &Value) -> Result<(), ApiError> {
        self.0.create(key, service).await
    }
    async fn replace(&self, key: &ServiceKey, service: &Value) -> Result<(), ApiError> {
        self.0.replace(key, service).await
    }
    async fn delete(&self, key: &ServiceKey, uid: &str, version: &str) -> Result<(), ApiError> {
        self.0.delete(key, uid, version).await
    }
    async fn pods(&self, key: &ServiceKey) -> Result<Vec<Pod>, ApiError> {
        self.0.pods(key).await
    }
    async fn account(&self, key: &ServiceKey) -> Result<bool, ApiError> {
        self.0.account(key).await
    }
}

/// The registry of one running pod.
fn registry(fake: &Fake) -> Arc<Registry> {
    let mut index = Index::new(Settings::default());
    let web = ServiceKey::new("shop", "web-0");
    fake.with(|state| {
        state.server.put_pod(&web, pod("web", &json!({})));
        state.server.put_pod(&ServiceKey::new("shop", "x"), pod("we.b", &json!({})));
        while let Some(change) = state.server.feed.pop_front() {
            index.apply(change);
        }
    });
    index.registry().unwrap()
}

#[tokio::test]
async fn it_works_once_there_is_a_registry_and_a_term() {
    let fake = Arc::new(Fake::new(1));
    let heard = Heard::default();
    let (sender, receiver) = watch::channel(None);
    let generator = Generator {
        services: Shared(fake.clone()),
        leadership: Leadership::alone(),
        registry: receiver,
        periods: Periods::default(),
        observer: heard.clone(),
    };
    let task = tokio::spawn(generator.run());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(fake.with(|state| state.writes.is_empty()), "no registry, no write");
    sender.send(Some(registry(&fake))).unwrap();
    let done = async {
        while heard.0.lock().unwrap().1.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), done).await.unwrap();
    assert_eq!(fake.with(|state| state.writes.clone()), ["create shop/web"]);
    assert_eq!(heard.0.lock().unwrap().1, ["create written"]);
    assert_eq!(heard.0.lock().unwrap().0.len(), 1);
    drop(sender);
    tokio::time::timeout(Duration::from_secs(10), task).await.unwrap().unwrap();
    assert!(heard.0.lock().unwrap().0.is_empty(), "nothing is wrong that nobody looks at");
}

/// An API server that is away.
#[derive(Clone, Default)]
struct Away(Arc<AtomicUsize>);

impl Away {
    fn asked<T>(&self) -> Result<T, ApiError> {
        self.0.fetch_add(1, Relaxed);
        Err(ApiError::Failed("connection refused".to_owned()))
    }
}

impl Services for Away {
    async fn get(&self, _: &ServiceKey) -> Result<Option<Value>, ApiError> {
        self.asked()
    }
    async fn create(&self, _: &ServiceKey, _: &Value) -> Result<(), ApiError> {
        self.asked()
    }
    async fn replace(&self, _: &ServiceKey, _: &Value) -> Result<(), ApiError> {
        self.asked()
    }
    async fn delete(&self, _: &ServiceKey, _: &str, _: &str) -> Result<(), ApiError> {
        self.asked()
    }
    async fn pods(&self, _: &ServiceKey) -> Result<Vec<Pod>, ApiError> {
        self.asked()
    }
    async fn account(&self, _: &ServiceKey) -> Result<bool, ApiError> {
        self.asked()
    }
}

#[tokio::test]
async fn while_the_api_server_is_away_it_is_tried_now_and_then_and_not_for_each_service() {
    let fake = Fake::new(1);
    let mut index = Index::new(Settings::default());
    fake.with(|state| {
        for n in 0..500 {
            let account = format!("web-{n}");
            let key = ServiceKey::new("shop", format!("{account}-0"));
            state.server.put_pod(&key, pod(&account, &json!({})));
        }
        while let Some(change) = state.server.feed.pop_front() {
            index.apply(change);
        }
    });
    let (_sender, registry) = watch::channel(index.registry());
    let away = Away::default();
    let generator = Generator {
        services: away.clone(),
        leadership: Leadership::alone(),
        registry,
        periods: Periods::default(),
        observer: Heard::default(),
    };
    let task = tokio::spawn(generator.run());
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    task.abort();
    // After 0, 1 and 3 s: those that are under way at once, and never all five hundred.
    let asked = away.0.load(Relaxed);
    assert!((3 * 8..=3 * 16).contains(&asked), "{asked}");
}

#[tokio::test]
async fn without_a_term_nothing_is_written() {
    let fake = Fake::new(1);
    let registry = registry(&fake);
    let (state, periods) = (State::default(), Periods::default());
    let operations = decide(&registry, &state, &periods, Boot::default()).operations;
    assert_eq!(operations.len(), 1);
    assert_eq!(act(&operations[0], &fake, &Permit::ended()).await, Outcome::Lost);
    assert!(fake.with(|state| state.writes.is_empty()));
}

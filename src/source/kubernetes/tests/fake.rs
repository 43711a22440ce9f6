//! An API server in this process: lists, watches, and the ways in which it can fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Bytes = bytes::Bytes;
type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;

/// Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(super) struct Fake(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    version: u64,
    /// By resource, then namespace and name.
    objects: BTreeMap<String, BTreeMap<String, Value>>,
    watches: Vec<(String, mpsc::UnboundedSender<Value>)>,
    /// Verbs and resources that are forbidden.
    pub forbidden: BTreeSet<(&'static str, &'static str)>,
    /// Whether a list may come by a watch.
    pub pages_alone: bool,
    /// Whether a watch that goes on is told that it cannot.
    pub forgets: bool,
    /// Whether nothing answers.
    pub away: bool,
    /// Whether watches end as soon as they are begun.
    pub hangs_up: bool,
    pub requests: Vec<String>,
}

impl Fake {
    pub(super) fn set(&self, change: impl FnOnce(&mut Settings<'_>)) {
        let mut inside = self.0.lock().unwrap();
        let inside = &mut *inside;
        change(&mut Settings {
            forbidden: &mut inside.forbidden,
            pages_alone: &mut inside.pages_alone,
            forgets: &mut inside.forgets,
            away: &mut inside.away,
            hangs_up: &mut inside.hangs_up,
        });
    }

    /// Puts an object of a resource, and tells whoever watches.
    pub(super) fn put(&self, resource: &str, mut object: Value) {
        let mut inside = self.0.lock().unwrap();
        inside.version += 1;
        object["metadata"]["resourceVersion"] = inside.version.to_string().into();
        let objects = inside.objects.entry(resource.to_owned()).or_default();
        let old = objects.insert(key(&object), object.clone());
        let kind = if old.is_some() { "MODIFIED" } else { "ADDED" };
        inside.tell(resource, json!({ "type": kind, "object": object }));
    }

    pub(super) fn delete(&self, resource: &str, namespace: &str, name: &str) {
        let mut inside = self.0.lock().unwrap();
        inside.version += 1;
        let version = inside.version;
        let objects = inside.objects.entry(resource.to_owned()).or_default();
        let Some(mut object) = objects.remove(&format!("{namespace}/{name}")) else { return };
        object["metadata"]["resourceVersion"] = version.to_string().into();
        inside.tell(resource, json!({ "type": "DELETED", "object": object }));
    }

    /// Ends every watch.
    pub(super) fn cut(&self) {
        self.0.lock().unwrap().watches.clear();
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.0.lock().unwrap().requests.clone()
    }

    pub(super) fn client(&self) -> Client {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = fake.answer(&request);
            async move { answer.map_err(tower::BoxError::from) }
        });
        Client::new(service, "default")
    }

    fn answer(&self, request: &Request<Body>) -> Result<Answer, std::io::Error> {
        let mut inside = self.0.lock().unwrap();
        let uri = request.uri();
        inside.requests.push(uri.to_string());
        if inside.away {
            return Err(std::io::Error::from_raw_os_error(111));
        }
        let resource = uri.path().rsplit('/').next().unwrap().to_owned();
        let query: BTreeMap<&str, &str> =
            uri.query().unwrap_or_default().split('&').filter_map(|q| q.split_once('=')).collect();
        let watch = query.get("watch") == Some(&"true");
        let verb = if watch { "watch" } else { "list" };
        if inside.forbidden.iter().any(|(v, r)| *v == verb && *r == resource) {
            let words = format!("{resource} is forbidden: User \"u\" cannot {verb} it");
            return Ok(failure(403, "Forbidden", &words));
        }
        let accept = request.headers().get(http::header::ACCEPT);
        let metadata_only =
            accept.is_some_and(|accept| accept.to_str().unwrap().contains("PartialObjectMetadata"));
        if !watch {
            return Ok(inside.list(&resource, &query, metadata_only));
        }
        let streams = query.get("sendInitialEvents") == Some(&"true");
        if streams && inside.pages_alone {
            return Ok(failure(422, "Invalid", "sendInitialEvents: Forbidden"));
        }
        let mut first = Vec::new();
        if streams {
            let objects = inside.objects.get(&resource).into_iter().flat_map(BTreeMap::values);
            first.extend(objects.map(|o| json!({ "type": "ADDED", "object": o })));
            let meta = json!({ "resourceVersion": inside.version.to_string(), "annotations": { "k8s.io/initial-events-end": "true" } });
            first.push(json!({ "type": "BOOKMARK", "object": { "apiVersion": "v1", "kind": "X", "metadata": meta } }));
        } else if std::mem::take(&mut inside.forgets) {
            first.push(json!({ "type": "ERROR", "object": { "code": 410, "reason": "Expired", "message": "too old" } }));
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        if !inside.hangs_up {
            inside.watches.push((resource, sender));
        }
        let told = stream::unfold(receiver, async |mut r| r.recv().await.map(|told| (told, r)));
        let lines = stream::iter(first).chain(told).map(move |told| {
            let told = if metadata_only { partial_event(told) } else { told };
            Ok(http_body::Frame::data(Bytes::from(format!("{told}\n"))))
        });
        Ok(Response::new(BodyExt::boxed_unsync(StreamBody::new(lines))))
    }
}

/// What a test may turn.
pub(super) struct Settings<'a> {
    pub forbidden: &'a mut BTreeSet<(&'static str, &'static str)>,
    pub pages_alone: &'a mut bool,
    pub forgets: &'a mut bool,
    pub away: &'a mut bool,
    pub hangs_up: &'a mut bool,
}

impl Inside {
    fn tell(&mut self, resource: &str, event: Value) {
        let to = self.watches.iter().filter(|(of, _)| of == resource);
        to.for_each(|(_, watch)| drop(watch.send(event.clone())));
    }

    fn list(&self, resource: &str, query: &BTreeMap<&str, &str>, metadata_only: bool) -> Answer {
        let objects: Vec<_> =
            self.objects.get(resource).into_iter().flat_map(BTreeMap::values).collect();
        let start: usize = query.get("continue").map_or(0, |token| token.parse().unwrap());
        // Smaller pages than are asked for, which a server may send.
        let end = (start + 2).min(objects.len());
        let items: Vec<_> = objects[start..end]
            .iter()
            .map(|o| if metadata_only { partial(o) } else { (*o).clone() })
            .collect();
        let mut meta = json!({ "resourceVersion": self.version.to_string() });
        if end < objects.len() {
            meta["continue"] = end.to_string().into();
        }
        let list = json!({ "kind": "List", "apiVersion": "v1", "metadata": meta, "items": items });
        full(StatusCode::OK, &list)
    }
}

fn key(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

fn partial(object: &Value) -> Value {
    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"] })
}

fn partial_event(mut event: Value) -> Value {
    if matches!(event["type"].as_str(), Some("ADDED" | "MODIFIED" | "DELETED")) {
        event["object"] = partial(&event["object"]);
    }
    event
}

fn failure(code: u16, reason: &str, message: &str) -> Answer {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message });
    full(StatusCode::from_u16(code).unwrap(), &status)
}

fn full(status: StatusCode, value: &Value) -> Answer {
    let body = Full::new(Bytes::from(value.to_string())).map_err(|never| match never {});
    Response::builder().status(status).body(BodyExt::boxed_unsync(body)).unwrap()
}

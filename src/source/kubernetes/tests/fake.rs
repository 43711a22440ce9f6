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
    /// What a watch that goes on from a version is told of the time since.
    history: Vec<(u64, String, Value)>,
    /// Verbs and resources that are forbidden.
    forbidden: BTreeSet<(&'static str, &'static str)>,
    faults: BTreeSet<Fault>,
    requests: Vec<String>,
}

/// What may be wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// A list does not come by a watch.
    PagesAlone,
    /// The next watch that goes on is told that it cannot.
    Forgets,
    /// The next list that is streamed holds something that is no JSON.
    Garbles,
    /// Nothing answers.
    Away,
    /// Watches end as soon as they are begun.
    HangsUp,
}

impl Fake {
    /// From now on this is wrong with it.
    pub(super) fn with(&self, fault: Fault) {
        self.0.lock().unwrap().faults.insert(fault);
    }

    /// This is wrong no more.
    pub(super) fn without(&self, fault: Fault) {
        self.0.lock().unwrap().faults.remove(&fault);
    }

    /// Forbids to do this with a resource.
    pub(super) fn forbid(&self, verb: &'static str, resource: &'static str) {
        self.0.lock().unwrap().forbidden.insert((verb, resource));
    }

    /// Forbids nothing.
    pub(super) fn allow(&self) {
        self.0.lock().unwrap().forbidden.clear();
    }

    /// Puts an object of a resource, and tells whoever watches.
    pub(super) fn put(&self, resource: &str, mut object: Value) {
        let mut inside = self.0.lock().unwrap();
        inside.version += 1;
        object["metadata"]["resourceVersion"] = inside.version.to_string().into();
        let objects = inside.objects.entry(resource.to_owned()).or_default();
        let old = objects.insert(key(&object), object.clone());
        let kind = if old.is_some() { "MODIFIED" } else { "ADDED" };
        inside.tell(resource, &json!({ "type": kind, "object": object }));
    }

    pub(super) fn delete(&self, resource: &str, namespace: &str, name: &str) {
        let mut inside = self.0.lock().unwrap();
        inside.version += 1;
        let version = inside.version;
        let objects = inside.objects.entry(resource.to_owned()).or_default();
        let Some(mut object) = objects.remove(&format!("{namespace}/{name}")) else { return };
        object["metadata"]["resourceVersion"] = version.to_string().into();
        inside.tell(resource, &json!({ "type": "DELETED", "object": object }));
    }

    /// Ends every watch.
    pub(super) fn cut(&self) {
        self.0.lock().unwrap().watches.clear();
    }

    /// Tells whoever watches something that is no JSON.
    pub(super) fn garble(&self, resource: &str) {
        let mut inside = self.0.lock().unwrap();
        inside.tell(resource, &json!({ "garbled": true }));
        inside.history.pop();
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
        if inside.faults.contains(&Fault::Away) {
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
        if streams && inside.faults.contains(&Fault::PagesAlone) {
            return Ok(failure(422, "Invalid", "sendInitialEvents: Forbidden"));
        }
        let mut first = Vec::new();
        if streams {
            if inside.faults.remove(&Fault::Garbles) {
                first.push(json!({ "garbled": true }));
            }
            let objects = inside.objects.get(&resource).into_iter().flat_map(BTreeMap::values);
            first.extend(objects.map(|o| json!({ "type": "ADDED", "object": o })));
            let meta = json!({ "resourceVersion": inside.version.to_string(), "annotations": { "k8s.io/initial-events-end": "true" } });
            first.push(json!({ "type": "BOOKMARK", "object": { "apiVersion": "v1", "kind": "X", "metadata": meta } }));
        } else if inside.faults.remove(&Fault::Forgets) {
            first.push(json!({ "type": "ERROR", "object": { "code": 410, "reason": "Expired", "message": "too old" } }));
        } else {
            let since: u64 = query["resourceVersion"].parse().unwrap();
            let history = inside.history.iter();
            let missed = history.filter(|(at, of, _)| *at > since && *of == resource);
            first.extend(missed.map(|(_, _, event)| event.clone()));
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        if !inside.faults.contains(&Fault::HangsUp) {
            inside.watches.push((resource, sender));
        }
        let told = stream::unfold(receiver, async |mut r| r.recv().await.map(|told| (told, r)));
        let lines = stream::iter(first).chain(told).map(move |told| {
            let object = if metadata_only { partial_event(&told) } else { told["object"].clone() };
            // As an API server writes it: the type first.
            let line = format!("{{\"type\":{},\"object\":{object}}}\n", told["type"]);
            let line = if told["garbled"] == true {
                "{\"type\":\"ADDED\",\"object\":}\n".to_owned()
            } else {
                line
            };
            Ok(http_body::Frame::data(Bytes::from(line)))
        });
        Ok(Response::new(BodyExt::boxed_unsync(StreamBody::new(lines))))
    }
}

impl Inside {
    fn tell(&mut self, resource: &str, event: &Value) {
        self.history.push((self.version, resource.to_owned(), event.clone()));
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

fn partial_event(event: &Value) -> Value {
    match event["type"].as_str() {
        Some("ADDED" | "MODIFIED" | "DELETED") => partial(&event["object"]),
        _ => event["object"].clone(),
    }
}

fn failure(code: u16, reason: &str, message: &str) -> Answer {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message });
    full(StatusCode::from_u16(code).unwrap(), &status)
}

fn full(status: StatusCode, value: &Value) -> Answer {
    let body = Full::new(Bytes::from(value.to_string())).map_err(|never| match never {});
    Response::builder().status(status).body(BodyExt::boxed_unsync(body)).unwrap()
}

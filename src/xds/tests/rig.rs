//! A client of one session, without a network.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::{
    Fault, Heard, Kind, Protocol, Request, Response, Session, Versions, Wants, Words,
};
use super::world::{NODE, World};

/// A session, a clock, and what a test says to them.
pub struct Rig {
    pub session: Session,
    pub now: Instant,
    pub protocol: Protocol,
    pub heard: Option<Heard>,
    named: bool,
}

impl Rig {
    pub fn new(protocol: Protocol) -> Self {
        Self::of(protocol, None)
    }

    pub fn of(protocol: Protocol, only: Option<Kind>) -> Self {
        let admit = Arc::new(|id: &str| {
            if id.starts_with("pod/") { Ok(()) } else { Err("say pod/<ns>/<name>".into()) }
        });
        let session = Session::new(protocol, only, admit);
        Self { session, now: Instant::now(), protocol, heard: None, named: false }
    }

    /// A delta stream on a world.
    pub fn delta(world: &mut World) -> Self {
        let mut rig = Self::new(Protocol::Delta);
        rig.publish(world);
        rig
    }

    /// A state-of-the-world stream on a world.
    pub fn sotw(world: &mut World) -> Self {
        let mut rig = Self::new(Protocol::Sotw);
        rig.publish(world);
        rig
    }

    pub fn publish(&mut self, world: &mut World) -> Vec<Response> {
        self.session.snapshot(world.snapshot());
        self.session.drive(self.now)
    }

    pub fn wait(&mut self, time: Duration) -> Vec<Response> {
        self.now += time;
        self.session.drive(self.now)
    }

    /// Says a request; the first one bears the node.
    pub fn say(&mut self, mut request: Request) -> Result<Vec<Response>, Fault> {
        if !std::mem::replace(&mut self.named, true) && request.node.is_none() {
            request.node = Some(NODE.into());
        }
        self.heard = Some(self.session.request(request, self.now)?);
        Ok(self.session.drive(self.now))
    }

    fn wants(&self, subscribe: &[&str], unsubscribe: &[&str]) -> Wants {
        let list = |names: &[&str]| names.iter().collect();
        match self.protocol {
            Protocol::Sotw => Wants::All(list(subscribe)),
            Protocol::Delta => Wants::Change {
                subscribe: list(subscribe),
                unsubscribe: list(unsubscribe),
                initial: Versions::default(),
            },
        }
    }

    /// A request without a nonce.
    pub fn ask(&mut self, kind: Kind, names: &[&str]) -> Vec<Response> {
        self.with("", kind, names, &[])
    }

    /// Delta: a change of subscription without a nonce.
    pub fn change(
        &mut self,
        kind: Kind,
        subscribe: &[&str],
        unsubscribe: &[&str],
    ) -> Vec<Response> {
        self.with("", kind, subscribe, unsubscribe)
    }

    pub fn with(&mut self, nonce: &str, kind: Kind, sub: &[&str], unsub: &[&str]) -> Vec<Response> {
        let wants = self.wants(sub, unsub);
        let type_url = kind.type_url().into();
        self.say(Request { type_url, nonce: nonce.into(), wants, ..Request::default() }).unwrap()
    }

    /// Delta: the first request of a client that has something already.
    pub fn resume(&mut self, kind: Kind, names: &[&str], has: &[(&str, &str)]) -> Vec<Response> {
        let wants = Wants::Change {
            subscribe: names.iter().collect(),
            unsubscribe: Words::default(),
            initial: has.iter().copied().collect(),
        };
        let type_url = kind.type_url().into();
        self.say(Request { type_url, wants, ..Request::default() }).unwrap()
    }

    /// Acknowledges; in state-of-the-world with the names that are wanted.
    pub fn ack(&mut self, response: &Response, names: &[&str]) -> Vec<Response> {
        let nonce = response.nonce.to_string();
        self.with(&nonce, response.kind.unwrap(), names, &[])
    }

    pub fn nack(&mut self, response: &Response, names: &[&str], words: &str) -> Vec<Response> {
        let request = Request {
            type_url: response.type_url.to_string(),
            nonce: response.nonce.to_string(),
            error: Some(words.into()),
            wants: self.wants(names, &[]),
            ..Request::default()
        };
        self.say(request).unwrap()
    }
}

/// What one response says: type, resource names, removed names.
pub fn said(response: &Response) -> (Option<Kind>, Vec<String>, Vec<String>) {
    let names = response.resources.iter().map(|r| r.name().to_string()).collect();
    (response.kind, names, response.removed.iter().map(ToString::to_string).collect())
}

/// Asserts what responses say, in order.
pub fn expect(responses: &[Response], wanted: &[(Kind, &[&str], &[&str])]) {
    let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let wanted: Vec<_> =
        wanted.iter().map(|(kind, has, gone)| (Some(*kind), list(has), list(gone))).collect();
    let said: Vec<_> = responses.iter().map(said).collect();
    assert_eq!(said, wanted);
}

/// The one response.
pub fn one(mut responses: Vec<Response>) -> Response {
    assert_eq!(responses.len(), 1, "{:?}", responses.iter().map(said).collect::<Vec<_>>());
    responses.remove(0)
}

/// The body of a resource in a response.
pub fn body(response: &Response, name: &str) -> String {
    let resource = response.resources.iter().find(|r| **r.name() == *name).unwrap();
    String::from_utf8(resource.body().to_bytes().to_vec()).unwrap()
}

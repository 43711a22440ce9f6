//! One stream without a network: an Envoy's session that has all it asked for.

use std::sync::Arc;
use std::time::Instant;

use aether::xds::{Kind, Protocol, Request, Response, Session, Snapshot, Versions, Wants, Words};

/// The session of the one pod.
pub struct Stream {
    session: Session,
    now: Instant,
}

impl Stream {
    /// A stream that has all of a snapshot.
    pub fn new(snapshot: &Arc<Snapshot>) -> Self {
        let session = Session::new(Protocol::Delta, None, Arc::new(|_: &str| Ok(())));
        let mut stream = Self { session, now: Instant::now() };
        stream.session.snapshot(snapshot.clone());
        let clusters = stream.asks(Kind::Cluster, &[]);
        let named: Vec<String> = clusters.iter().filter_map(|name| assignment(name)).collect();
        stream.asks(Kind::Endpoints, &named.iter().map(String::as_str).collect::<Vec<_>>());
        stream.asks(Kind::Listener, &[]);
        stream.asks(Kind::Routes, &["cap_http.team-0"]);
        stream.asks(Kind::VirtualHost, &["*"]);
        stream
    }

    /// Takes a newer snapshot, and accepts what comes of it: how many resources.
    pub fn takes(&mut self, snapshot: &Arc<Snapshot>) -> usize {
        self.session.snapshot(snapshot.clone());
        let responses = self.session.drive(self.now);
        self.accepts(responses).len()
    }

    /// Asks for these names, and accepts all that comes. The names of what came.
    fn asks(&mut self, kind: Kind, names: &[&str]) -> Vec<String> {
        let wants = changes(names.iter().collect());
        let node = Some("pod/team-0/caller-0".to_owned());
        let type_url = kind.type_url().to_owned();
        self.session
            .request(Request { node, type_url, wants, ..Request::default() }, self.now)
            .unwrap();
        let responses = self.session.drive(self.now);
        let got = self.accepts(responses);
        assert!(!got.is_empty(), "something of {kind:?} comes");
        got
    }

    fn accepts(&mut self, mut responses: Vec<Response>) -> Vec<String> {
        let mut got = Vec::new();
        while !responses.is_empty() {
            for response in std::mem::take(&mut responses) {
                got.extend(response.resources.iter().map(|resource| resource.name().to_string()));
                let answer = Request {
                    type_url: response.type_url.to_string(),
                    nonce: response.nonce.to_string(),
                    wants: changes(Words::default()),
                    ..Request::default()
                };
                self.session.request(answer, self.now).unwrap();
                responses.extend(self.session.drive(self.now));
            }
        }
        got
    }
}

fn changes(subscribe: Words) -> Wants {
    Wants::Change { subscribe, unsubscribe: Words::default(), initial: Versions::default() }
}

/// The assignment that a cluster names, as a client reads it from the cluster.
fn assignment(cluster: &str) -> Option<String> {
    // `http:name.ns.domain` (its default port) or `…:port`; the assignment is `ns/name:port`.
    let (speaks, rest) = cluster.split_once(':')?;
    let (host, port) = rest.split_once(':').unwrap_or((rest, "80"));
    let mut labels = host.split('.');
    let (name, namespace) = (labels.next()?, labels.next()?);
    (speaks == "http" || speaks == "tcp").then(|| format!("{namespace}/{name}:{port}"))
}

//! Each protocol and each extreme once. Every function here runs with and without capture, and tells what the client
//! saw in lines that have to be the same.

#[path = "protocols/http1.rs"]
mod http1;
#[path = "protocols/others.rs"]
mod others;

use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result};
use it::backend::{self, Backend, H2Backend, Http1Backend};
use tokio::time::timeout;

use crate::stage::{Caller, GRPC, HTTP1, HTTP2, Stage, Target, WS};

/// What a client saw.
type Seen = Vec<String>;
type Play = fn(Target, Caller) -> Pin<Box<dyn Future<Output = Result<Seen>> + Send>>;

/// What is played, by name, besides the answer that takes 20 s.
const PLAYS: [(&str, Play); 12] = [
    ("a kept connection", |t, c| Box::pin(http1::kept(t, c))),
    ("HTTP/1.0", |t, c| Box::pin(http1::old(t, c))),
    ("Expect: 100-continue", |t, c| Box::pin(http1::expect(t, c))),
    ("8 MB each way", |t, c| Box::pin(http1::big(t, c))),
    ("a header of 32 kB each way", |t, c| Box::pin(http1::wide(t, c))),
    ("an answer in drops", |t, c| Box::pin(http1::drops(t, c))),
    ("an answer that is cut off", |t, c| Box::pin(http1::cut(t, c))),
    ("h2c", |t, c| Box::pin(others::h2c(t, c))),
    ("gRPC", |t, c| Box::pin(others::grpc(t, c))),
    ("gRPC in both directions at once", |t, c| Box::pin(others::chat(t, c))),
    ("WebSocket", |t, c| Box::pin(others::websocket(t, c))),
    ("pipelined requests", |t, c| Box::pin(http1::pipelined(t, c))),
];

/// The servers of a target, one for each protocol.
pub struct Servers {
    /// The one that counts.
    pub http1: Http1Backend,
    _h2: H2Backend,
    _others: [Backend; 2],
}

impl Servers {
    /// Starts them.
    pub async fn start(stage: &Stage, target: &Target) -> Result<Self> {
        let pod = stage.servers(target).netns();
        let _others = [
            backend::grpc(pod, target.server(GRPC)).await?,
            backend::ws_echo(pod, target.server(WS)).await?,
        ];
        Ok(Self {
            http1: Http1Backend::start(pod, target.server(HTTP1), http1::script).await?,
            _h2: H2Backend::start(pod, target.server(HTTP2), others::script).await?,
            _others,
        })
    }
}

/// Has both callers play everything with a target; returns what differed.
pub async fn play(stage: &Stage, target: Target) -> Result<Vec<String>> {
    // The long one runs beside the others, and those one after the other: some of them take much of the machine.
    let slow = one(stage, target, "an answer after 20 s", |t, c| Box::pin(http1::slow(t, c)));
    let others = async {
        let mut differences = Vec::new();
        for (name, play) in PLAYS {
            differences.extend(one(stage, target, name, play).await?);
        }
        Ok(differences)
    };
    let (slow, mut differences) = futures::try_join!(slow, others)?;
    differences.extend(slow);
    Ok(differences)
}

/// Has both callers play this; returns what differed.
async fn one(stage: &Stage, target: Target, name: &str, play: Play) -> Result<Option<String>> {
    let seen_by = |caller| async move {
        let talk = async move {
            timeout(Duration::from_mins(1), play(target, caller)).await.context("no end")?
        };
        // An error is something that a client sees, too.
        stage.pod(caller).run(talk).await.map_err(|error| format!("{error:#}"))
    };
    let (free, captured) = futures::join!(seen_by(Caller::Free), seen_by(Caller::Captured));
    let free = free.map_err(|error| anyhow::anyhow!("{name} without capture: {error}"))?;
    if captured.as_ref() == Ok(&free) {
        return Ok(None);
    }
    let found = captured.unwrap_or_else(|error| vec![error]);
    let differ = free.iter().zip(&found).find(|(free, found)| free != found);
    Ok(Some(format!(
        "{name} with {}: {} lines became {}, the first that differ: {differ:?}",
        target.name,
        free.len(),
        found.len()
    )))
}

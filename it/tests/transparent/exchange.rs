//! Asks as a client, answers as a backend, and shows what each of them saw.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use it::backend::{Http1Backend, Reply};
use it::client::Http1;
use tokio::time::timeout;

use crate::exact::{Part, View};
use crate::stage::{Caller, HTTP1, Stage, Target};

/// A request and what the backend answers to it, byte for byte.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// What the client sends.
    pub request: Vec<u8>,
    /// What the backend answers.
    pub answer: Vec<u8>,
    /// Whether the backend closes the connection after its answer.
    pub closes: bool,
}

/// Whoever has not answered after this never will.
const PATIENCE: Duration = Duration::from_secs(10);
/// The start line of the request that tells whether a connection was kept.
const PROBE: &str = "GET /probe HTTP/1.1";

/// A backend that answers what it is told to.
pub struct Scripted {
    backend: Http1Backend,
    answers: Arc<Mutex<VecDeque<Reply>>>,
}

impl Scripted {
    /// The HTTP/1.1 server of a target.
    pub async fn start(stage: &Stage, target: &Target) -> Result<Self> {
        let answers = Arc::new(Mutex::new(VecDeque::<Reply>::new()));
        let script = answers.clone();
        let pod = stage.servers(target).netns();
        let answer = move |_: &_| {
            let next = script.lock().unwrap().pop_front();
            next.unwrap_or_else(|| {
                Reply::raw("HTTP/1.1 598 Asked Twice\r\ncontent-length: 0\r\n\r\n")
            })
        };
        Ok(Self { backend: Http1Backend::start(pod, target.server(HTTP1), answer).await?, answers })
    }

    /// Has a caller make these exchanges on one connection, and then one more that tells whether it was kept.
    pub async fn play(
        &self,
        stage: &Stage,
        caller: Caller,
        target: &Target,
        exchanges: &[Exchange],
    ) -> Result<Vec<View>> {
        let replies = exchanges.iter().map(|exchange| {
            let reply = Reply::raw(exchange.answer.clone());
            if exchange.closes { reply.close() } else { reply }
        });
        *self.answers.lock().unwrap() = replies.chain([Reply::ok("kept")]).collect();
        self.backend.take();
        let (address, host, exchanges) =
            (target.at(caller, HTTP1), target.hosts[0], exchanges.to_vec());
        let talk = async move {
            let mut http = Http1::connect(address).await?;
            let mut views = Vec::new();
            for exchange in &exchanges {
                let view = ask(&mut http, &exchange.request).await;
                let failed = view.answer.is_err();
                views.push(view);
                if failed {
                    return Ok(views);
                }
            }
            let probe = ask(&mut http, format!("{PROBE}\r\nHost: {host}\r\n\r\n").as_bytes()).await;
            if let Some(last) = views.last_mut() {
                last.ended = probe.answer.is_err();
            }
            Ok(views)
        };
        let mut views = stage.pod(caller).run(talk).await?;
        let asked = self.backend.take();
        let asked = asked.iter().map(Part::of).filter(|part| part.start != PROBE.as_bytes());
        let last = views.len().saturating_sub(1);
        for (n, part) in asked.enumerate() {
            views.get_mut(n.min(last)).context("no view")?.asked.push(part);
        }
        Ok(views)
    }
}

/// One exchange as the client sees it.
async fn ask(http: &mut Http1, request: &[u8]) -> View {
    let answer = timeout(PATIENCE, http.exchange(request)).await;
    let mut view = View::default();
    match answer.context("no answer").flatten() {
        Ok(answer) => {
            view.interim = answer.interim.iter().map(Part::head).collect();
            view.answer = Ok(Part::of(&answer.message));
        }
        Err(error) => {
            view.answer = Err(format!("{error:#}"));
            view.ended = true;
        }
    }
    view
}

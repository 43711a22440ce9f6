//! The same over HTTP/2, where a message is a list of fields and not bytes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use fastrand::Rng;
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use it::backend::H2Backend;
use it::wire::Framing;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::exact::{Field, Part, View};
use crate::generate;
use crate::stage::{Caller, HTTP2, Stage, Target};

type Body = BoxBody<Bytes, Infallible>;

/// A message without its start line.
#[derive(Debug, Clone, Default)]
pub struct Content {
    fields: HeaderMap,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
}

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    method: Method,
    uri: Uri,
    request: Content,
    status: u16,
    answer: Content,
}

impl Content {
    fn generate(rng: &mut Rng, fields: Vec<(String, String)>, may_have_body: bool) -> Self {
        let trailers = generate::trailers(rng);
        let body = if may_have_body { generate::body(rng, 3000) } else { Vec::new() };
        // hyper ends a stream with its head only if it knows the length of nothing.
        let trailers = (may_have_body && !trailers.is_empty()).then(|| map(trailers));
        Self { fields: map(fields), body, trailers }
    }

    fn body(&self) -> Body {
        let data = (!self.body.is_empty()).then(|| Frame::data(Bytes::from(self.body.clone())));
        let trailers = self.trailers.clone().map(Frame::trailers);
        if data.is_none() && trailers.is_none() {
            return http_body_util::Empty::new().boxed();
        }
        StreamBody::new(stream::iter(data.into_iter().chain(trailers).map(Ok))).boxed()
    }
}

/// One exchange. The same seed gives the same fields.
pub fn exchange(seed: u64, hosts: &[&str]) -> Exchange {
    let rng = &mut Rng::with_seed(seed);
    let method = ["GET", "GET", "POST", "PUT", "DELETE", "OPTIONS", "PURGE", "QUERY", "M-SEARCH"];
    let method = Method::from_str(generate::one(rng, &method)).unwrap();
    let host = generate::one(rng, hosts);
    let scheme = if generate::chance(rng, 20) { "https" } else { "http" };
    // Not every path that an HTTP/1.1 client can write is one for this library.
    let uri = std::iter::repeat_with(|| {
        format!("{scheme}://{host}:{HTTP2}{}", generate::target(rng)).parse()
    });
    let uri = uri.take(100).find_map(Result::ok).unwrap();
    let mut fields = generate::asked(rng);
    if generate::chance(rng, 20) {
        fields.push(("te".to_owned(), "trailers".to_owned()));
    }
    if method.as_str() == "QUERY" {
        fields.push(("content-type".to_owned(), "text/plain".to_owned()));
    }
    let sends = !matches!(method.as_str(), "GET" | "OPTIONS" | "DELETE");
    let request = Content::generate(rng, fields, sends);
    let status =
        [200, 200, 200, 201, 204, 206, 304, 404, 429, 500, 502, 503, 504, 599][rng.usize(..14)];
    let mut fields = generate::answered(rng);
    // The library would put the time of day here.
    fields.push(("date".to_owned(), "Tue, 15 Nov 1994 08:12:31 GMT".to_owned()));
    let answer = Content::generate(rng, fields, !matches!(status, 204 | 304));
    Exchange { method, uri, request, status, answer }
}

/// A backend that answers what it is told to.
pub struct Scripted {
    backend: H2Backend,
    answers: Arc<Mutex<VecDeque<Exchange>>>,
}

impl Scripted {
    /// The HTTP/2 server of a target.
    pub async fn start(stage: &Stage, target: &Target) -> Result<Self> {
        let answers = Arc::new(Mutex::new(VecDeque::<Exchange>::new()));
        let script = answers.clone();
        let answer = move |_: &_| {
            let Some(next) = script.lock().unwrap().pop_front() else {
                return Response::builder().status(598).body(Body::default()).unwrap();
            };
            let mut answer = Response::new(next.answer.body());
            *answer.status_mut() = next.status.try_into().unwrap();
            *answer.headers_mut() = next.answer.fields;
            answer
        };
        let pod = stage.servers(target).netns();
        Ok(Self { backend: H2Backend::start(pod, target.server(HTTP2), answer).await?, answers })
    }

    /// Has a caller make these exchanges, one after the other on one connection.
    pub async fn play(
        &self,
        stage: &Stage,
        caller: Caller,
        target: &Target,
        exchanges: &[Exchange],
    ) -> Result<Vec<View>> {
        *self.answers.lock().unwrap() = exchanges.iter().cloned().collect();
        self.backend.take();
        let (address, exchanges) = (target.at(caller, HTTP2), exchanges.to_vec());
        let talk = async move {
            let stream = TokioIo::new(TcpStream::connect(address).await?);
            let (mut send, connection) =
                hyper::client::conn::http2::handshake::<_, _, Body>(TokioExecutor::new(), stream)
                    .await?;
            let _connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
            let mut views = Vec::new();
            for exchange in exchanges {
                let mut request = Request::new(exchange.request.body());
                *request.method_mut() = exchange.method;
                *request.uri_mut() = exchange.uri;
                *request.headers_mut() = exchange.request.fields;
                let answered = async {
                    let (head, body) = send.send_request(request).await?.into_parts();
                    let body = body.collect().await?;
                    let trailers = body.trailers().cloned();
                    Ok::<_, hyper::Error>(part(
                        head.status.as_str(),
                        &head.headers,
                        &body.to_bytes(),
                        trailers.as_ref(),
                    ))
                };
                let answer =
                    timeout(Duration::from_secs(10), answered).await.context("no answer")?;
                let answer = answer
                    .map_err(|error| format!("{error}: {:?}", std::error::Error::source(&error)));
                views.push(View { answer, ..View::default() });
            }
            Ok(views)
        };
        let mut views = stage.pod(caller).run(talk).await?;
        let asked = self.backend.take();
        anyhow::ensure!(
            asked.len() <= views.len(),
            "{} requests came, {} were asked",
            asked.len(),
            views.len()
        );
        for (view, asked) in views.iter_mut().zip(asked) {
            let start = format!("{} {}", asked.head.method, asked.head.uri);
            view.asked.push(part(
                &start,
                &asked.head.headers,
                &asked.body,
                asked.trailers.as_ref(),
            ));
        }
        Ok(views)
    }
}

fn part(start: &str, fields: &HeaderMap, body: &[u8], trailers: Option<&HeaderMap>) -> Part {
    let fields_of = |map: &HeaderMap| {
        let mut fields: Vec<_> = map.iter().collect();
        // Names have no order in a map; values of one name have.
        fields.sort_by_key(|(name, _)| name.as_str());
        let field = |(name, value): (&HeaderName, &HeaderValue)| Field {
            name: name.as_str().into(),
            value: [b" ", value.as_bytes()].concat(),
        };
        fields.into_iter().map(field).collect()
    };
    Part {
        start: start.into(),
        fields: fields_of(fields),
        framing: Framing::Absent,
        body: body.to_vec(),
        trailers: trailers.map(fields_of).unwrap_or_default(),
    }
}

/// Fields that HTTP/2 has, in lower case as it demands.
fn map(fields: Vec<(String, String)>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_str(&name.to_ascii_lowercase()).unwrap();
        map.append(name, HeaderValue::from_bytes(value.trim().as_bytes()).unwrap());
    }
    map
}

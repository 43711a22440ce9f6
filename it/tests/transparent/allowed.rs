//! What a captured exchange may differ in from the same one without capture: the one list of it, in the order of
//! "What stays visible, and may" of the notes on Envoy. Each rule *predicts* what the proxy makes of what there would
//! have been without it, so that a rule which no longer holds shows as a difference, too.

use crate::exact::{Field, Part, View};
use it::wire::Framing;

/// What both ends see of an exchange through the proxy, given what they see without it. The captured view is asked for
/// nothing but the time that a `date` shows.
pub fn through_the_mesh(direct: &View, captured: &View) -> View {
    let mut view = direct.clone();
    let Ok(answer) = &mut view.answer else { return view };
    let (mut old, mut closes) = (false, false);
    for request in &mut view.asked {
        old |= request.start.ends_with(b"HTTP/1.0");
        closes |= request.value("connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"));
        version(request);
        hop_by_hop(request);
        taken_from_requests(request);
        joined(request, JOINED_IN_REQUESTS);
        spelled_alike(request);
        length_of_nothing(request);
        framing_last(request);
        host_first(request);
    }
    view.interim.truncate(1);
    let head = view.asked.iter().any(|request| request.start.starts_with(b"HEAD "));
    if old {
        answer.start[..8].copy_from_slice(b"HTTP/1.0");
    } else {
        version(answer);
    }
    reason(answer);
    hop_by_hop(answer);
    joined(answer, JOINED_IN_ANSWERS);
    spelled_alike(answer);
    date(answer, captured.answer.as_ref().ok());
    if old || closes {
        answer.fields.push(Field::new("connection", "close"));
    }
    body_until_the_end(answer, old, head);
    framing_last(answer);
    view.ended = old || closes;
    view
}

/// "HTTP/1.0 becomes 1.1 upstream": and an answer in 1.0 becomes one in the version of its request.
fn version(part: &mut Part) {
    let at = |bytes: &[u8]| bytes.windows(8).position(|w| w == b"HTTP/1.0");
    if part.start.starts_with(b"HTTP/1.0") || part.start.ends_with(b" HTTP/1.0") {
        let end = if part.start.starts_with(b"HTTP") { at(&part.start).unwrap() + 8 } else { part.start.len() };
        part.start[end - 1] = b'1';
    }
}

/// "hop-by-hop headers": they are between neighbours, so the proxy has its own. Of `te` the one word that is end to end
/// stays. Whether a connection is kept is between neighbours, too: a client keeps its own unless it or its version ends it.
fn hop_by_hop(part: &mut Part) {
    for field in part.fields.iter_mut().filter(|field| field.is("te")) {
        let trailers = field.value.split(|byte| *byte == b',').any(|word| word.trim_ascii() == b"trailers");
        field.value = if trailers { b" trailers".to_vec() } else { Vec::new() };
    }
    part.fields.retain(|field| {
        let names = ["connection", "keep-alive", "proxy-connection"];
        !names.iter().any(|name| field.is(name)) && !(field.is("te") && field.value.is_empty())
    });
}

/// Fields whose repetitions become one, joined by commas, the empty ones left out: those that Envoy knows.
const JOINED_IN_REQUESTS: &[&str] = &[
    "accept", "accept-encoding", "access-control-request-method", "authorization", "cache-control", "content-encoding", "content-type",
    "grpc-timeout", "if-none-match", "origin", "user-agent", "via", "x-client-trace-id", "x-envoy-attempt-count", "x-envoy-decorator-operation",
    "x-envoy-downstream-service-cluster", "x-envoy-downstream-service-node", "x-envoy-external-address", "x-envoy-original-path", "x-envoy-upstream-canary",
    "x-forwarded-client-cert", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-request-id",
];
const JOINED_IN_ANSWERS: &[&str] = &[
    "access-control-allow-origin", "access-control-expose-headers", "age", "cache-control", "content-encoding", "content-type", "date", "etag",
    "expires", "grpc-message", "grpc-status", "last-modified", "location", "pragma", "proxy-status", "server", "vary", "via",
    "x-envoy-attempt-count", "x-envoy-decorator-operation", "x-envoy-degraded", "x-envoy-immediate-health-check-fail", "x-envoy-ratelimited",
    "x-envoy-upstream-canary", "x-envoy-upstream-healthchecked-cluster", "x-envoy-upstream-service-time", "x-request-id",
];

fn joined(part: &mut Part, names: &[&str]) {
    for name in names {
        let values: Vec<Vec<u8>> = part.fields.iter().filter(|f| f.is(name)).map(|f| f.value.trim_ascii().to_vec()).collect();
        if values.len() < 2 {
            continue;
        }
        let full: Vec<_> = values.into_iter().filter(|value| !value.is_empty()).collect();
        let mut first = true;
        part.fields.retain_mut(|field| {
            if !field.is(name) {
                return true;
            }
            if first {
                field.value = [b" ".to_vec(), full.join(&b","[..])].concat();
            }
            std::mem::take(&mut first)
        });
    }
}

/// "headers of one name take the first one's case", and "trailer names in lower case".
fn spelled_alike(part: &mut Part) {
    for at in 0..part.fields.len() {
        let name = part.fields[at].name.clone();
        for later in &mut part.fields[at + 1..] {
            if later.name.eq_ignore_ascii_case(&name) {
                later.name.clone_from(&name);
            }
        }
    }
    for trailer in &mut part.trailers {
        trailer.name.make_ascii_lowercase();
    }
}

const TAKEN: &[&str] = &[
    "x-envoy-expected-rq-timeout-ms", "x-envoy-force-trace", "x-envoy-hedge-on-per-try-timeout", "x-envoy-internal", "x-envoy-ip-tags",
    "x-envoy-max-retries", "x-envoy-original-url", "x-envoy-retriable-header-names", "x-envoy-retriable-status-codes", "x-envoy-retry-grpc-on",
    "x-envoy-retry-on", "x-envoy-upstream-alt-stat-name", "x-envoy-upstream-rq-per-try-timeout-ms", "x-envoy-upstream-rq-timeout-alt-response",
    "x-envoy-upstream-rq-timeout-ms", "x-envoy-upstream-stream-duration-ms", "x-aether-forwarded-proto", "referer",
];

/// "the client's own x-envoy-retry-on, …"
fn taken_from_requests(part: &mut Part) {
    part.fields.retain(|field| !TAKEN.iter().any(|name| field.is(name)));
}

/// "`content-length: 0` on a POST without body", and on any other method that may have one.
fn length_of_nothing(part: &mut Part) {
    let method = part.start.split(|byte| *byte == b' ').next().unwrap_or_default();
    let never = ["GET", "HEAD", "DELETE", "TRACE"].iter().any(|name| name.as_bytes() == method);
    if part.framing == Framing::Absent && !never {
        part.fields.push(Field::new("content-length", "0"));
        part.framing = Framing::Length(0);
    }
}

/// `Host` stands first.
fn host_first(part: &mut Part) {
    if let Some(at) = part.fields.iter().position(|field| field.is("host")) {
        part.fields[..=at].rotate_right(1);
    }
}

/// `transfer-encoding` stands last.
fn framing_last(part: &mut Part) {
    if let Some(at) = part.fields.iter().position(|field| field.is("transfer-encoding")) {
        part.fields[at..].rotate_left(1);
    }
}

/// An empty reason becomes the usual one.
fn reason(part: &mut Part) {
    let usual = |code: &[u8]| match code {
        b"200" => "OK",
        _ => "",
    };
    if part.start.trim_ascii_end().len() == 12 {
        part.start = [&part.start[..12], b" ", usual(&part.start[9..12]).as_bytes()].concat();
    }
}

/// "`date` where the backend sent none": the proxy's clock.
fn date(part: &mut Part, captured: Option<&Part>) {
    if part.has("date") {
        return;
    }
    if let Some(value) = captured.and_then(|captured| captured.value("date")) {
        part.fields.push(Field::new("date", std::str::from_utf8(value).unwrap_or_default()));
    }
}

/// "hop-by-hop headers": a body that the end of the connection ends comes in chunks, and chunks come to a client of
/// HTTP/1.0 until the end.
fn body_until_the_end(part: &mut Part, old: bool, _head: bool) {
    if old {
        part.fields.retain(|field| !field.is("transfer-encoding"));
        if part.framing == Framing::Chunked {
            part.framing = Framing::Close;
        }
    } else if part.framing == Framing::Close {
        part.fields.push(Field::new("transfer-encoding", "chunked"));
        part.framing = Framing::Chunked;
    }
}

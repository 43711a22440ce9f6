//! What a captured exchange may differ in from the same one without capture. It is the one list of it; each rule says
//! which words of "What stays visible, and may" of the notes on Envoy it stands for.
//!
//! A rule *predicts* what the proxy makes of what there would have been without it. So a rule that no longer holds
//! shows as a difference, too, and should go.

#[path = "allowed/names.rs"]
mod names;

use it::wire::Framing;
use names::{JOINED_IN_ANSWERS, JOINED_IN_REQUESTS, JOINED_IN_TRAILERS, PUT_BACK, TAKEN};

use crate::exact::{Field, Part, View};

/// What both ends see through the proxy of what they see without it. The captured view itself is asked for nothing but
/// the time of day.
pub fn over_http1(direct: &View, captured: &View) -> View {
    let mut view = direct.clone();
    let (mut old, mut closes, mut to_head) = (false, false, false);
    for request in &mut view.asked {
        old |= request.start.ends_with(b"HTTP/1.0");
        closes |= request.value("connection").is_some_and(|v| v.eq_ignore_ascii_case(b"close"));
        to_head |= request.start.starts_with(b"HEAD ");
        version_of_request(request);
        white_space(request);
        hop_by_hop(request);
        fields_of_request(request);
        spelled_alike(request);
        length_of_nothing(request);
        host_first(request);
        framing_last(request);
    }
    one_interim(&mut view);
    let Ok(answer) = &mut view.answer else { return view };
    start_of_answer(answer, old);
    white_space(answer);
    let connection = answer.fields.iter().find(|field| field.is("connection")).cloned();
    hop_by_hop(answer);
    joined(&mut answer.fields, JOINED_IN_ANSWERS);
    joined(&mut answer.trailers, JOINED_IN_TRAILERS);
    spelled_alike(answer);
    date(answer, captured.answer.as_ref().ok());
    view.ended = old || closes;
    if view.ended {
        // The proxy's own, spelled as the backend spells its.
        let name = connection.map_or(b"connection".to_vec(), |field| field.name);
        answer.fields.push(Field { name, value: b" close".to_vec() });
    }
    framing_of_answer(answer, old, to_head);
    view
}

/// The same over HTTP/2, where fields have no order but among those of one name.
pub fn over_http2(direct: &View) -> View {
    let mut view = direct.clone();
    for request in &mut view.asked {
        fields_of_request(request);
        cookies(request);
        request.fields.sort_by(|a, b| a.name.cmp(&b.name));
    }
    if let Ok(answer) = &mut view.answer {
        joined(&mut answer.fields, JOINED_IN_ANSWERS);
        joined(&mut answer.trailers, JOINED_IN_TRAILERS);
    }
    view
}

/// "HTTP/1.0 becomes 1.1 upstream"
fn version_of_request(request: &mut Part) {
    if let Some(line) = request.start.strip_suffix(b"HTTP/1.0") {
        request.start = [line, b"HTTP/1.1"].concat();
    }
}

/// "HTTP/1.0 becomes 1.1 upstream", and an answer comes in the version of its request; "an empty reason becomes the
/// usual one".
fn start_of_answer(answer: &mut Part, old: bool) {
    let (version, rest) = answer.start.split_at(8);
    assert!(version.starts_with(b"HTTP/1."), "{answer:?}");
    let version: &[u8] = if old { b"HTTP/1.0" } else { b"HTTP/1.1" };
    let reason: &[u8] = if rest.trim_ascii() == b"200" { b" 200 OK" } else { rest };
    answer.start = [version, reason].concat();
}

/// "hop-by-hop headers": they are between neighbours, and so is whether a connection is kept. Of `te` the one word that
/// is end to end passes.
fn hop_by_hop(part: &mut Part) {
    for field in part.fields.iter_mut().filter(|field| field.is("te")) {
        let mut words = field.value.split(|byte| *byte == b',');
        let trailers = words.any(|word| word.trim_ascii() == b"trailers");
        field.value = if trailers { b" trailers".to_vec() } else { Vec::new() };
    }
    part.fields.retain(|field| {
        let between = ["connection", "keep-alive", "proxy-connection"];
        !(between.iter().any(|name| field.is(name)) || field.is("te") && field.value.is_empty())
    });
}

/// "fields that Envoy knows and that stand more than once become one, joined by commas, empty ones left out"
fn joined(fields: &mut Vec<Field>, names: &[&str]) {
    for name in names {
        let of_name = fields.iter().filter(|field| field.is(name));
        let values: Vec<_> = of_name.map(|field| field.value.trim_ascii().to_vec()).collect();
        if values.len() < 2 {
            continue;
        }
        let full = values.into_iter().filter(|value| !value.is_empty());
        let mut all = Some([b" ".to_vec(), full.collect::<Vec<_>>().join(&b","[..])].concat());
        fields.retain_mut(|field| {
            if !field.is(name) {
                return true;
            }
            let first = all.take();
            let kept = first.is_some();
            field.value = first.unwrap_or_default();
            kept
        });
    }
}

/// The fields of a request: "the client's own x-envoy-retry-on, …" go; "a referer that is no URL, …" stand
/// last, where they are not empty.
fn fields_of_request(request: &mut Part) {
    request.fields.retain(|field| !TAKEN.iter().any(|name| field.is(name)));
    joined(&mut request.fields, JOINED_IN_REQUESTS);
    for name in PUT_BACK {
        let Some(at) = request.fields.iter().position(|field| field.is(name)) else { continue };
        if *name != "referer" || !is_url(request.fields[at].value.trim_ascii()) {
            let field = request.fields.remove(at);
            if !field.value.trim_ascii().is_empty() {
                request.fields.push(field);
            }
        }
    }
}

/// "cookies that HTTP/2 splits are joined by `; `", as RFC 9113 has it for whoever passes them on.
fn cookies(request: &mut Part) {
    let mut all = Vec::new();
    for field in request.fields.extract_if(.., |field| field.is("cookie")) {
        if !all.is_empty() {
            all.extend(b"; ");
        }
        all.extend(field.value.trim_ascii());
    }
    if !all.is_empty() {
        request
            .fields
            .push(Field { name: b"cookie".to_vec(), value: [b" ".to_vec(), all].concat() });
    }
}

/// What Envoy takes for the URL of a referer: an absolute one without fragment and user, or a relative reference.
fn is_url(value: &[u8]) -> bool {
    let scheme = value.windows(3).position(|window| window == b"://");
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    if let Some(at) = scheme.filter(|at| *at > 0 && value[..*at].iter().all(legal)) {
        let host = value[at + 3..].split(|byte| *byte == b'/').next().unwrap_or_default();
        return !host.contains(&b',') && !value.iter().any(|byte| b"#@".contains(byte));
    }
    let path = value.iter().position(|byte| *byte == b'/').unwrap_or(value.len());
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(byte);
    value.iter().all(legal) && !value[..path].contains(&b':')
}

/// "headers of one name take the first one's case", "trailer names in lower case"
fn spelled_alike(part: &mut Part) {
    for at in 0..part.fields.len() {
        let name = part.fields[at].name.clone();
        let later = part.fields[at + 1..].iter_mut();
        for field in later.filter(|field| field.name.eq_ignore_ascii_case(&name)) {
            field.name.clone_from(&name);
        }
    }
    for trailer in &mut part.trailers {
        trailer.name.make_ascii_lowercase();
    }
}

/// "`content-length: 0` on a request without body whose method may have one"
fn length_of_nothing(request: &mut Part) {
    let method = request.start.split(|byte| *byte == b' ').next().unwrap_or_default();
    let never: [&[u8]; 4] = [b"GET", b"HEAD", b"DELETE", b"TRACE"];
    if request.framing == Framing::Absent && !never.contains(&method) {
        request.fields.push(Field::new("content-length", "0"));
        request.framing = Framing::Length(0);
    }
}

/// "`Host` stands first"
fn host_first(request: &mut Part) {
    if let Some(at) = request.fields.iter().position(|field| field.is("host")) {
        request.fields[..=at].rotate_right(1);
    }
}

/// "`transfer-encoding` stands last"
fn framing_last(part: &mut Part) {
    if let Some(at) = part.fields.iter().position(|field| field.is("transfer-encoding")) {
        part.fields[at..].rotate_left(1);
    }
}

/// "of several 1xx answers the first alone"
fn one_interim(view: &mut View) {
    view.interim.truncate(1);
    view.interim.iter_mut().for_each(white_space);
}

/// "white space around a value becomes one space before it"
fn white_space(part: &mut Part) {
    for field in &mut part.fields {
        field.value = [b" ", field.value.trim_ascii()].concat();
    }
}

/// "`date` where the backend sent none"
fn date(answer: &mut Part, captured: Option<&Part>) {
    let added = captured.and_then(|captured| captured.value("date"));
    if let (false, Some(value)) = (answer.has("date"), added) {
        let value = std::str::from_utf8(value).unwrap_or_default();
        // Of the form that RFC 9110 demands, by its length and its end.
        if value.len() == 29 && value.ends_with(" GMT") {
            answer.fields.push(Field::new("date", value));
        }
    }
}

/// "hop-by-hop headers": how a body is framed is between neighbours, too. One that ends with its connection comes in
/// chunks; what comes in chunks ends with the connection of an HTTP/1.0 client; an answer to HEAD says the framing that
/// there would be.
fn framing_of_answer(answer: &mut Part, old: bool, to_head: bool) {
    if old {
        answer.fields.retain(|field| !field.is("transfer-encoding"));
        if answer.framing == Framing::Chunked {
            answer.framing = Framing::Close;
        }
        return;
    }
    let told = answer.has("content-length") || answer.has("transfer-encoding");
    let bodiless = [&b"204"[..], b"304"].contains(&&answer.start[9..12]);
    if answer.framing == Framing::Close || to_head && !told && !bodiless {
        answer.fields.push(Field::new("transfer-encoding", "chunked"));
    }
    if answer.framing == Framing::Close {
        answer.framing = Framing::Chunked;
    }
    framing_last(answer);
}

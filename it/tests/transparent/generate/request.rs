//! Requests.

use fastrand::Rng;

use super::fields::{asked, spell, trailers};
use super::{body, chance, chunked, one};

/// A request, and what its answer depends on.
pub(super) struct Asked {
    pub bytes: Vec<u8>,
    pub head: bool,
    pub old: bool,
}

const METHODS: &[&str] = &[
    "GET",
    "GET",
    "GET",
    "POST",
    "POST",
    "PUT",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "PURGE",
    "PROPFIND",
    "MKCOL",
    "M-SEARCH",
    "REPORT",
    "LOCK",
    "BREW",
    "X",
    "LINK",
    "SUBSCRIBE",
    "QUERY",
];

const SEGMENTS: &[&str] = &[
    "",
    "",
    ".",
    "..",
    "a",
    "index.html",
    "%2F",
    "%2e%2E",
    "%41",
    "%",
    "%zz",
    "%00",
    "a;b=c;d",
    "a,b",
    "~me",
    "!$&'()*+,;=:@",
    "a b%20c",
    "A|B",
    "^",
    "{x}",
    "\"q\"",
    "<x>",
    "`",
    "\\",
    "a\\..\\b",
    "-._~",
    "http:",
    "caf%C3%A9",
    "*",
    "api.v1.Svc",
];

const QUERIES: &[&str] = &[
    "",
    "?",
    "??",
    "?a=b&c=%20+d",
    "?q=a/b?c",
    "?x[]=1&x[]=2",
    "?u=http://a/b",
    "?%",
    "?a=%2F..%2f",
    "?;",
    "?a=\"b\"|{c}",
    "?=&&=",
];

/// A request. Only the last of a connection may end it.
pub(super) fn request(rng: &mut Rng, hosts: &[&str], last: bool) -> Asked {
    let old = last && chance(rng, 8);
    let method = if old { one(rng, &["GET", "POST", "HEAD"]) } else { one(rng, METHODS) };
    let mut fields = asked(rng);
    let mut host = one(rng, hosts).to_owned();
    if chance(rng, 30) {
        host.push_str(":80");
    }
    let mut tail = Vec::new();
    let sends =
        chance(rng, if matches!(method, "GET" | "HEAD" | "TRACE" | "OPTIONS") { 10 } else { 80 });
    if method == "TRACE" {
        // It has no body, by definition.
    } else if sends && !old && chance(rng, 40) {
        let trailers = trailers(rng);
        let body = body(rng, 3000);
        tail = chunked(rng, &body, true, &trailers);
        fields.push((spell(rng, "transfer-encoding"), "chunked".to_owned()));
        if !trailers.is_empty() && rng.bool() {
            let names: Vec<_> = trailers.iter().map(|(name, _)| name.as_str()).collect();
            fields.push((spell(rng, "trailer"), names.join(", ")));
        }
    } else if sends || matches!(method, "POST" | "PUT") && old {
        tail = body(rng, 3000);
        fields.push((spell(rng, "content-length"), tail.len().to_string()));
    }
    if !tail.is_empty() && !old && chance(rng, 10) {
        fields.push((spell(rng, "expect"), "100-continue".to_owned()));
    }
    if method == "QUERY"
        && !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        fields.push(("Content-Type".to_owned(), "text/plain".to_owned()));
    }
    hop_by_hop(rng, &mut fields, last, old);
    let at = if rng.bool() { 0 } else { rng.usize(..=fields.len()) };
    fields.insert(at, (spell(rng, "host"), host));
    let version = if old { "HTTP/1.0" } else { "HTTP/1.1" };
    let mut bytes = format!("{method} {} {version}\r\n", target(rng)).into_bytes();
    for (name, value) in fields {
        bytes.extend(format!("{name}: {value}\r\n").bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(tail);
    Asked { bytes, head: method == "HEAD", old }
}

/// Fields that are between neighbours.
fn hop_by_hop(rng: &mut Rng, fields: &mut Vec<(String, String)>, last: bool, old: bool) {
    if chance(rng, 10) {
        fields.push((
            spell(rng, "te"),
            one(rng, &["trailers", "deflate;q=0.5", "trailers, deflate"]).to_owned(),
        ));
    }
    if !old && chance(rng, 15) {
        let mut said = vec!["keep-alive", "Keep-Alive"];
        if last {
            said.push("close");
        }
        fields.push((spell(rng, "connection"), one(rng, &said).to_owned()));
    }
    if chance(rng, 4) {
        fields.push((spell(rng, "keep-alive"), "timeout=5, max=100".to_owned()));
    }
    if chance(rng, 4) {
        fields.push((spell(rng, "proxy-connection"), "keep-alive".to_owned()));
    }
}

/// A path and a query.
pub fn target(rng: &mut Rng) -> String {
    let mut target = String::new();
    for _ in 0..=rng.usize(..5) {
        target.push('/');
        target.push_str(&one(rng, SEGMENTS).replace(' ', "+"));
    }
    target.push_str(one(rng, QUERIES));
    target
}

//! Answers.

use fastrand::Rng;

use super::fields::{answered, spell, trailers};
use super::request::Asked;
use super::{body, chance, chunked, one};
use crate::exchange::Exchange;

const STATUS: &[&str] = &[
    "200 OK",
    "200 OK",
    "200 OK",
    "200 All's well (really)",
    "200 ",
    "200",
    "201 Created",
    "202 Accepted",
    "203 X",
    "204 No Content",
    "205 Reset Content",
    "206 Partial Content",
    "226 IM Used",
    "299 Odd",
    "301 Moved Permanently",
    "302 Found",
    "304 Not Modified",
    "307 Temporary Redirect",
    "400 Bad Request",
    "401 Unauthorized",
    "403 Forbidden",
    "404 Not Found",
    "405 no",
    "408 Request Timeout",
    "409 Conflict",
    "413 Payload Too Large",
    "418 I'm a teapot",
    "421 Misdirected Request",
    "425 Too Early",
    "426 Upgrade Required",
    "429 Too Many Requests",
    "431 X",
    "451 Unavailable For Legal Reasons",
    "500 Internal Server Error",
    "501 Not Implemented",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "504 Gateway Timeout",
    "505 HTTP Version Not Supported",
    "511 X",
    "599 Odd Too",
];

/// An answer to this request; without the request.
pub(super) fn answer(rng: &mut Rng, asked: &Asked, last: bool) -> Exchange {
    let mut bytes = Vec::new();
    if !asked.old {
        interim(rng, &mut bytes);
    }
    let status = one(rng, STATUS);
    let mut fields = answered(rng);
    let mut closes = false;
    let mut tail = Vec::new();
    let bodiless = ["204", "304"].iter().any(|code| status.starts_with(code));
    let old = last && chance(rng, 8);
    if bodiless {
        if status.starts_with("304") && chance(rng, 30) {
            fields.push((spell(rng, "content-length"), "1234".to_owned()));
        }
    } else if asked.head {
        match rng.u32(..3) {
            0 => fields.push((spell(rng, "content-length"), "1234".to_owned())),
            1 if !old => fields.push((spell(rng, "transfer-encoding"), "chunked".to_owned())),
            _ => {}
        }
    } else if !old && !asked.old && chance(rng, 40) {
        let trailers = trailers(rng);
        let body = body(rng, 5000);
        tail = chunked(rng, &body, true, &trailers);
        fields.push((spell(rng, "transfer-encoding"), "chunked".to_owned()));
    } else if last && chance(rng, 15) {
        // Until the connection ends.
        tail = body(rng, 5000);
        closes = true;
    } else {
        tail = body(rng, 5000);
        fields.push((spell(rng, "content-length"), tail.len().to_string()));
    }
    if old {
        closes = true;
    } else if last && (closes || chance(rng, 10)) {
        closes = true;
        if rng.bool() {
            fields.push((spell(rng, "connection"), one(rng, &["close", "Close"]).to_owned()));
        }
    } else if chance(rng, 10) {
        fields.push((spell(rng, "connection"), "keep-alive".to_owned()));
        if rng.bool() {
            fields.push((spell(rng, "keep-alive"), "timeout=5".to_owned()));
        }
    }
    let at = rng.usize(..=fields.len());
    fields.rotate_left(at);
    head(&mut bytes, &format!("HTTP/1.{} {status}", u8::from(!old)), &fields);
    bytes.extend(tail);
    Exchange { request: Vec::new(), answer: bytes, closes }
}

/// No, one or two answers before the answer.
fn interim(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let link = |rng: &mut Rng| vec![(spell(rng, "link"), "</a.css>; rel=preload".to_owned())];
    if chance(rng, 6) {
        head(bytes, "HTTP/1.1 102 Processing", &[]);
    }
    if chance(rng, 8) {
        let fields = link(rng);
        head(bytes, "HTTP/1.1 103 Early Hints", &fields);
    }
}

fn head(bytes: &mut Vec<u8>, start: &str, fields: &[(String, String)]) {
    bytes.extend(format!("{start}\r\n").bytes());
    for (name, value) in fields {
        bytes.extend(format!("{name}: {value}\r\n").bytes());
    }
    bytes.extend(b"\r\n");
}

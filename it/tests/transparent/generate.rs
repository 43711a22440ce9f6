//! Requests and answers as applications make them, odd but legal ones before all.

#[path = "generate/answer.rs"]
mod answer;
#[path = "generate/fields.rs"]
mod fields;
#[path = "generate/request.rs"]
mod request;

use fastrand::Rng;
pub use fields::{answered, asked, trailers};
pub use request::target;

use crate::exchange::Exchange;

/// One to three exchanges on a connection. The same seed gives the same bytes.
pub fn exchanges(seed: u64, hosts: &[&str]) -> Vec<Exchange> {
    let mut rng = Rng::with_seed(seed);
    let count = 1 + rng.usize(..3);
    let mut exchanges = Vec::new();
    for n in 1..=count {
        let last = n == count;
        let asked = request::request(&mut rng, hosts, last);
        let mut exchange = answer::answer(&mut rng, &asked, last);
        exchange.request = asked.bytes;
        exchanges.push(exchange);
    }
    exchanges
}

/// One of these.
pub fn one<'a, T: ?Sized>(rng: &mut Rng, of: &[&'a T]) -> &'a T {
    of[rng.usize(..of.len())]
}

/// Whether something happens that does so in this many of a hundred cases.
pub fn chance(rng: &mut Rng, percent: u32) -> bool {
    rng.u32(..100) < percent
}

/// Up to this many bytes, any of them; text more often than not.
pub fn body(rng: &mut Rng, most: usize) -> Vec<u8> {
    let length = if chance(rng, 20) { 0 } else { rng.usize(..=most) };
    let text = chance(rng, 60);
    let byte = |rng: &mut Rng| if text { rng.u8(b' '..b'~') } else { rng.u8(..) };
    (0..length).map(|_| byte(rng)).collect()
}

/// A body in chunks, some with extensions, and trailers.
fn chunked(rng: &mut Rng, body: &[u8], extensions: bool, trailers: &[(String, String)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(1 + rng.usize(..rest.len()));
        let size =
            if rng.bool() { format!("{:x}", chunk.len()) } else { format!("{:04X}", chunk.len()) };
        bytes.extend(size.bytes());
        if extensions && chance(rng, 30) {
            bytes.extend(b";name=\"value\"");
        }
        bytes.extend(b"\r\n");
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
        rest = after;
    }
    bytes.extend(b"0\r\n");
    for (name, value) in trailers {
        bytes.extend(format!("{name}: {value}\r\n").bytes());
    }
    bytes.extend(b"\r\n");
    bytes
}

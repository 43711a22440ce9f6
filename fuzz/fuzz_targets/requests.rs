//! Any bytes as the requests of a stream: `cargo +nightly fuzz run requests`.
#![no_main]

use std::sync::{LazyLock, Mutex};

use it::fuzz::Requests;

static REQUESTS: LazyLock<Mutex<Requests>> =
    LazyLock::new(|| Mutex::new(Requests::start().expect("the server starts")));

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut requests = REQUESTS.lock().expect("no input panicked");
    requests.send(input).expect("an answer that ends");
});

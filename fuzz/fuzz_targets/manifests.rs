//! Any bytes as a manifest: `cargo +nightly fuzz run manifests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| it::fuzz::manifests(text));

//! What is given any bytes at all, to find those that it does not bear. The targets of `fuzz/` and the bounded run of
//! the tests enter here.

mod requests;
#[cfg(test)]
mod tests;

use aether::source::manifest;

pub use requests::Requests;

/// The most problems that one file may tell in words, and one that counts the others.
const PROBLEMS: usize = 101;

/// Reads a manifest, as YAML and as JSON.
///
/// # Panics
/// Where what was read is more than the text can hold.
pub fn manifests(text: &[u8]) {
    for name in ["fuzzed.yaml", "fuzzed.json"] {
        let read = manifest::read(name, text);
        assert!(read.problems.len() <= PROBLEMS, "{} problems", read.problems.len());
        assert!(read.objects.len() <= text.len(), "{} objects", read.objects.len());
    }
}

//! JSON: one document or several, one after the other.

use serde_json::value::RawValue;

use super::{Manifest, Problem, document};

/// Reads a file of JSON documents. What stands before a mistake is read, what follows it is not:
/// JSON has no marker at which one could go on.
pub(super) fn read(name: &str, text: &str, manifest: &mut Manifest) {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    for (index, document) in documents.enumerate() {
        let number = index + 1;
        let origin = format!("{name}#{number}");
        match document {
            Ok(raw) => document::read(name, &origin, raw.get(), manifest),
            Err(error) => {
                manifest.problem(Problem::file(
                    name,
                    &origin,
                    format!("document {number} is no JSON: {error}"),
                    "correct it there; what follows it in the file is not read",
                ));
                return;
            }
        }
    }
}

//! The documents of a text as they stand there, each with the JSON that it means, for those who
//! give the text back.

use serde_json::value::RawValue;

use super::repeated::{self, Repeated};
use super::{split, yaml};

/// One document of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawDocument<'a> {
    /// Which one, from 1 on.
    pub number: usize,
    /// Its text; of YAML with the marker that begins it.
    pub text: &'a str,
    /// What it means, as JSON with its keys in order; or why it cannot be read.
    pub json: Result<String, String>,
}

/// The documents of a text, of which the first that cannot be read is the last in JSON, which has
/// no marker at which one could go on.
pub fn documents(text: &str, form: Form) -> Vec<RawDocument<'_>> {
    let mut found = Vec::new();
    match form {
        Form::Yaml => split::documents(text, |part| {
            let json = yaml::to_json(part);
            let json = json.map_err(|broken| format!("{}; {}", broken.message, broken.way_out));
            let json = json.and_then(without_repeated);
            found.push(RawDocument { number: part.number, text: part.text, json });
        }),
        Form::Json => {
            let stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
            for (index, document) in stream.enumerate() {
                let (text, json) = match document {
                    Ok(raw) => (raw.get(), without_repeated(raw.get().to_owned())),
                    Err(error) => ("", Err(error.to_string())),
                };
                let last = json.is_err();
                found.push(RawDocument { number: index + 1, text, json });
                if last {
                    break;
                }
            }
        }
    }
    found
}

/// The document, if no key of it stands twice.
fn without_repeated(json: String) -> Result<String, String> {
    match repeated::repeated(&json) {
        None => Ok(json),
        Some(Repeated { key, path }) => {
            Err(format!("{path}: {}; {}", repeated::message(&key), repeated::WAY_OUT))
        }
    }
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON documents, one after the other.
    Json,
    /// YAML documents with markers between them.
    Yaml,
}

impl Form {
    /// The form of a text: JSON where it begins with `{` and the first document is JSON.
    pub fn of(text: &str) -> Self {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let object = text.trim_start().starts_with('{');
        if object && matches!(stream.next(), Some(Ok(_))) { Self::Json } else { Self::Yaml }
    }
}

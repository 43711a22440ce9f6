//! YAML: each document becomes JSON text, which the rest of the reader takes.
//!
//! That is what Kubernetes does too, so plain scalars mean what they mean there: an unquoted `1.0`
//! is a number, and no label.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::split::{Document, documents};
use super::{Manifest, Problem, document, repeated};

/// How deep collections may lie in one another. Reading them recurses, with up to 40 KiB of stack
/// for a level in a debug build, so this fits into the 2 MiB of a thread; objects need a tenth.
const MAX_DEPTH: usize = 64;

/// How many nodes aliases may repeat in one document.
const MAX_REPEATED: usize = 100_000;

/// How much longer than the YAML its JSON may become. Aliases can make a short text long.
fn most_json(yaml: usize) -> usize {
    yaml.saturating_mul(4).saturating_add(16 << 20)
}

/// Reads a stream of YAML documents.
pub(super) fn read(name: &str, text: &str, manifest: &mut Manifest) {
    documents(text, |part| {
        // Generated files hold thousands of these, and starting to parse one costs more than that.
        if part.is_empty() {
            return;
        }
        let origin = format!("{name}#{}", part.number);
        match to_json(part) {
            Ok(json) => document::read(name, &origin, &json, manifest),
            Err(Broken { message, way_out }) => manifest.problem(Problem::file(
                name,
                &origin,
                format!("document {} is no YAML: {message}", part.number),
                format!("{way_out}; the other documents of the file are read without it"),
            )),
        }
    });
}

/// Why a document is no YAML, and what to do about it.
pub(super) struct Broken {
    pub(super) message: String,
    pub(super) way_out: &'static str,
}

/// One document as JSON text.
pub(super) fn to_json(part: Document<'_>) -> Result<String, Broken> {
    // JSON is YAML, and reads faster as what it is.
    let body = part.text.strip_prefix("---").unwrap_or(part.text).trim();
    if body.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok() {
        return Ok(body.to_owned());
    }
    let mut out = Vec::new();
    let most = most_json(part.text.len());
    serde_saphyr::with_deserializer_from_str_with_options(part.text, options(), |deserializer| {
        Json { out: &mut out, most }.deserialize(deserializer)
    })
    .map_err(|error| describe(&error, part.lines_before))?;
    String::from_utf8(out)
        .map_err(|error| Broken { message: error.to_string(), way_out: "correct it there" })
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            // The file's own size bounds these. What aliases repeat has limits of its own.
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED },
        emit_comments: false,
        with_snippet: false,
    }
}

/// The error in words for whoever wrote the file (the library's own may advise its caller), with
/// the line of the file instead of that of the document.
fn describe(error: &serde_saphyr::Error, lines_before: usize) -> Broken {
    let error = error.without_snippet();
    let twice = match error {
        serde_saphyr::Error::DuplicateMappingKey { key, .. } => key.as_deref(),
        _ => None,
    };
    let text = twice.map_or_else(
        || error.render_with_formatter(&serde_saphyr::UserMessageFormatter),
        repeated::message,
    );
    let way_out = if twice.is_some() { repeated::WAY_OUT } else { "correct it there" };
    let Some(location) = error.location().filter(|location| location.line() > 0) else {
        return Broken { message: text, way_out };
    };
    let said = format!(" at line {}, column {}", location.line(), location.column());
    let text = text.strip_suffix(&said).unwrap_or(&text);
    let line = location.line() + lines_before as u64;
    Broken { message: format!("line {line}, column {}: {text}", location.column()), way_out }
}

/// Writes whatever it is given as JSON, up to a number of bytes.
struct Json<'o> {
    out: &'o mut Vec<u8>,
    most: usize,
}

impl Json<'_> {
    fn again(&mut self) -> Json<'_> {
        Json { out: self.out, most: self.most }
    }

    fn raw<E: Error>(&mut self, bytes: &[u8]) -> Result<(), E> {
        self.out.extend_from_slice(bytes);
        if self.out.len() > self.most {
            return Err(E::custom("its aliases (*name) make it far longer than it is written"));
        }
        Ok(())
    }

    fn scalar<E: Error>(&mut self, value: impl serde::Serialize) -> Result<(), E> {
        serde_json::to_writer(&mut *self.out, &value).map_err(E::custom)?;
        self.raw(b"")
    }
}

impl<'de> DeserializeSeed<'de> for Json<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Json<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i128<E: Error>(mut self, value: i128) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_u128<E: Error>(mut self, value: u128) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.raw(b"null")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        self.raw(b"[")?;
        let mut first = true;
        loop {
            let comma = self.out.len();
            self.raw(if first { b"" } else { b"," })?;
            if seq.next_element_seed(self.again())?.is_none() {
                self.out.truncate(comma);
                return self.raw(b"]");
            }
            first = false;
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.raw(b"{")?;
        let mut first = true;
        loop {
            let comma = self.out.len();
            self.raw(if first { b"" } else { b"," })?;
            if map.next_key_seed(Key(self.again()))?.is_none() {
                self.out.truncate(comma);
                return self.raw(b"}");
            }
            self.raw(b":")?;
            map.next_value_seed(self.again())?;
            first = false;
        }
    }
}

/// A key: JSON knows texts alone, so a number or truth value becomes its text, as in Kubernetes.
struct Key<'o>(Json<'o>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text as key")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.visit_string(value.to_string())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.visit_string(value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.visit_string(value.to_string())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.visit_string(value.to_string())
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        self.0.scalar(value)
    }
}

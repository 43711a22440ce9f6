//! From the text of a manifest to objects. Pure: no file is read here, and the same text always
//! gives the same objects and the same problems.
//!
//! YAML is turned into JSON first, document by document, so that one reader serves both and a
//! broken document costs itself alone. An object is then read as Kubernetes types it, and trimmed
//! to what the mesh looks at.

mod document;
mod json;
mod names;
mod object;
mod raw;
mod repeated;
mod split;
mod trim;
mod yaml;

use std::sync::Arc;

use crate::index::{Id, Object, ObjectKind};
use crate::model::{Finding, ObjectRef, Reason, Severity};

pub use names::is_dns_subdomain;
pub use object::{id, read_one, restore};
pub use raw::{Form, RawDocument, documents};
pub use trim::trim;

/// What the text of one file holds.
#[derive(Debug, Default)]
pub struct Manifest {
    /// The objects, in the order of the text. One object may stand here more than once.
    pub objects: Vec<Parsed>,
    /// What could not be read.
    pub problems: Vec<Problem>,
    /// There is nothing in it but white space: what a file looks like that was cut to nothing.
    pub blank: bool,
    /// How many problems there were beyond those that are kept.
    unsaid: usize,
}

/// How many problems of one file are kept in words.
const MAX_PROBLEMS: usize = 100;

impl Manifest {
    /// A file of which nothing can be read.
    pub fn unreadable(problem: Problem) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// Takes a problem, as one of many perhaps.
    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.unsaid += 1;
        }
    }

    /// Says how many problems were not kept.
    fn finish(&mut self, name: &str) {
        if self.unsaid > 0 {
            let message = format!("{} more of its parts cannot be read", self.unsaid);
            self.problems.push(Problem::file(
                name,
                name,
                message,
                "correct the ones before them first",
            ));
        }
    }
}

/// One object of a manifest.
#[derive(Debug)]
pub struct Parsed {
    /// Which one.
    pub id: Id,
    /// The object, trimmed.
    pub object: Object,
    /// The trimmed object as JSON. Two forms of an object are the same where these bytes are.
    pub form: Arc<[u8]>,
    /// File, document and place in a list: `apps.yaml#2.items[3]`.
    pub origin: Arc<str>,
}

/// Something that could not be read, and what of the file it may have held.
#[derive(Debug)]
pub struct Problem {
    /// The problem in words.
    pub finding: Finding,
    /// What may have been lost by it, so that its last good form can be kept.
    pub lost: Lost,
}

/// What an unreadable part of a file may have held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// No object of the mesh.
    Nothing,
    /// This object.
    Object(Id),
    /// Some object of this kind: its name cannot be read.
    Kind(ObjectKind),
    /// Any object at all.
    Anything,
}

impl Lost {
    /// Whether this object may be what was lost.
    pub fn covers(&self, id: &Id) -> bool {
        match self {
            Self::Nothing => false,
            Self::Object(lost) => lost == id,
            Self::Kind(kind) => *kind == id.kind,
            Self::Anything => true,
        }
    }
}

impl Problem {
    /// A file, or a document of it, that cannot be read: whatever it held is lost.
    pub fn file(
        name: &str,
        origin: &str,
        message: impl Into<String>,
        way_out: impl Into<String>,
    ) -> Self {
        let finding = Finding {
            object: ObjectRef::new("File", "", name),
            severity: Severity::Problem,
            reason: Reason::UnreadableFile,
            origin: Some(origin.into()),
            field: String::new(),
            message: message.into(),
            way_out: way_out.into(),
        };
        Self { finding, lost: Lost::Anything }
    }
}

/// Reads the text of one file. `name` is how findings call it: the path inside the folder. A name
/// that ends in `.json` is JSON, every other YAML, of which JSON is a part.
pub fn read(name: &str, bytes: &[u8]) -> Manifest {
    let mut manifest = Manifest::default();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            manifest.problem(Problem::file(
                name,
                name,
                format!(
                    "it is no UTF-8 text (byte {} is the first that is not)",
                    error.valid_up_to()
                ),
                "save it as UTF-8, or move it out of the folder if it is no manifest",
            ));
            return manifest;
        }
    };
    manifest.blank = text.trim().is_empty();
    if name.to_ascii_lowercase().ends_with(".json") {
        json::read(name, text, &mut manifest);
    } else {
        yaml::read(name, text, &mut manifest);
    }
    manifest.finish(name);
    manifest
}

#[cfg(test)]
mod tests;

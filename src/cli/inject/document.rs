//! One document: an object or a list of them, injected, and written as it was.

use anyhow::{Context, Result};
use json_patch::Patch;
use serde_json::Value;

use super::order::{Order, Ordered};
use crate::admission::Settings;
use crate::admission::workload::{self, Kind, Namespace, Outcome};
use crate::run::{Form, RawDocument};

/// How deep lists may lie in lists.
const MAX_LISTS: usize = 8;

/// One document of a file.
#[derive(Debug)]
pub struct Document<'a> {
    number: usize,
    text: &'a str,
    json: &'a str,
    value: Value,
}

/// What became of a document.
#[derive(Debug)]
pub struct Done {
    /// What it holds, in words.
    pub what: String,
    /// The operations on it.
    pub patch: Patch,
    /// What its pods get less than others.
    pub warnings: Vec<String>,
    /// The pods that would be denied.
    pub denials: Vec<String>,
}

const UNKNOWN: Kind<'static> = Kind { api_version: "", kind: "" };

impl<'a> Document<'a> {
    /// Reads a document.
    pub fn read(raw: &'a RawDocument<'a>) -> Result<Self, String> {
        let json = raw.json.as_deref().map_err(Clone::clone)?;
        let value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        Ok(Self { number: raw.number, text: raw.text, json, value })
    }

    /// Which one of the file, from 1 on.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The namespaces that it declares, and whether each is managed.
    pub fn namespaces(&self) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        each(&self.value, UNKNOWN, &mut Vec::new(), &mut |object, kind, _| {
            let namespace = workload::managed_namespace(object, kind);
            found.extend(namespace.map(|(name, managed)| (name.to_owned(), managed)));
            Ok(())
        })
        .unwrap_or_default();
        found
    }

    /// Injects its objects. `or` is the namespace of those that name none.
    pub fn inject(
        &self,
        or: &str,
        namespace: &impl Fn(&str) -> Namespace,
        settings: &Settings,
    ) -> Result<Done> {
        let mut done = Done {
            what: String::new(),
            patch: Patch::default(),
            warnings: vec![],
            denials: vec![],
        };
        let mut names = Vec::new();
        each(&self.value, UNKNOWN, &mut Vec::new(), &mut |object, kind, path| {
            let own = object.pointer("/metadata/namespace").and_then(Value::as_str);
            let namespace = namespace(own.filter(|own| !own.is_empty()).unwrap_or(or));
            let called = workload::called(object, kind, &namespace.name);
            let outcome = workload::inject(object, kind, &namespace, settings)
                .with_context(|| called.clone())?;
            match outcome {
                Outcome::NoWorkload | Outcome::Untouched(_) => {}
                Outcome::Denied(denial) => done.denials.push(denial.to_string()),
                Outcome::Managed { patch, warnings } => {
                    let said = warnings.iter().map(|warning| format!("{called}: {warning}"));
                    done.warnings.extend(said);
                    let path: Vec<&str> = path.iter().map(String::as_str).collect();
                    done.patch.0.extend(workload::below(&path, patch).0);
                }
            }
            names.push(called);
            Ok(())
        })?;
        done.what = names.join(", ");
        Ok(done)
    }

    /// The document with the operations applied, in its own form; as it stands where there are
    /// none.
    pub fn write(&self, patch: &Patch, form: Form) -> Result<String> {
        if patch.0.is_empty() {
            return Ok(self.text.to_owned());
        }
        let mut value = self.value.clone();
        json_patch::patch(&mut value, &patch.0)
            .context("the operations do not fit the document")?;
        let order: Order = serde_json::from_str(self.json)?;
        let ordered = Ordered { value: &value, earlier: &self.value, order: &order };
        let json = match form {
            Form::Yaml => yaml(&ordered),
            Form::Json => None,
        };
        let text = json.map_or_else(|| serde_json::to_string_pretty(&ordered), Ok)?;
        let marked = self.text.starts_with("---");
        Ok(if marked { format!("---\n{text}") } else { text })
    }
}

/// A value as YAML, where what is written reads as what was meant.
fn yaml(ordered: &Ordered<'_>) -> Option<String> {
    let options =
        serde_saphyr::ser_options! { prefer_block_scalars: true, folded_wrap_chars: usize::MAX };
    let text = serde_saphyr::to_string_with_options(ordered, options).ok()?;
    let documents = crate::run::documents(&text, Form::Yaml);
    let [document] = documents.as_slice() else { return None };
    let read: Value = serde_json::from_str(document.json.as_deref().ok()?).ok()?;
    (read == *ordered.value).then_some(text)
}

/// Calls `act` with each object: its kind, and its path in the document.
fn each(
    object: &Value,
    or: Kind<'_>,
    path: &mut Vec<String>,
    act: &mut impl FnMut(&Value, Kind<'_>, &[String]) -> Result<()>,
) -> Result<()> {
    if object.is_null() {
        return Ok(());
    }
    let kind = Kind::of(object, or);
    // A list's items have two keys of the path each.
    let Some((of, items)) = kind.items(object).filter(|_| path.len() < 2 * MAX_LISTS) else {
        return act(object, kind, path);
    };
    for (index, item) in items.iter().enumerate() {
        path.extend(["items".to_owned(), index.to_string()]);
        each(item, of, path, act)?;
        path.truncate(path.len() - 2);
    }
    Ok(())
}

//! What the tests of this module share.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::index::{Change, Id, Object};
use crate::model::Finding;
use crate::source::Update;

/// What whoever takes the updates knows after them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Taken {
    pub(super) objects: BTreeMap<Id, (Object, Arc<str>)>,
    pub(super) findings: Vec<Finding>,
}

impl Taken {
    pub(super) fn take(&mut self, changes: Vec<Change>) -> usize {
        let count = changes.len();
        for change in changes {
            match change {
                Change::Put { id, object, origin } => {
                    let new = (object, origin.unwrap());
                    assert_ne!(self.objects.get(&id), Some(&new), "no change of {id:?}");
                    self.objects.insert(id, new);
                }
                Change::Remove(id) => {
                    assert!(self.objects.remove(&id).is_some(), "{id:?} was not there");
                }
            }
        }
        count
    }

    pub(super) fn update(&mut self, update: Update) -> usize {
        self.findings = update.findings;
        self.take(update.changes)
    }

    /// Each object's name and origin.
    pub(super) fn show(&self) -> String {
        let shown = self.objects.iter().map(|(id, (_, origin))| format!("{}@{origin}", id.name));
        shown.collect::<Vec<_>>().join(" ")
    }

    /// The findings, a line each.
    pub(super) fn said(&self) -> String {
        self.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    /// The value of a node that [`node`] wrote.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        let (object, _) = self.objects.iter().find(|(id, _)| &*id.name == name)?.1;
        let Object::Node(node) = object else { return None };
        node.metadata.labels.as_ref()?.get("v").cloned()
    }
}

/// A document with a node that bears a value.
pub(super) fn node(name: &str, value: u32) -> String {
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{v: v{value}}}}}\n"
    )
}

/// Writes a file in the folder, with its subfolders.
pub(super) fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

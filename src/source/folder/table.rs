//! What the files of a folder hold together. Pure: files come in as what was read of them, changes
//! of objects go out.
//!
//! Held is each object's trimmed JSON, a fraction of the typed object; it shows whether a form is
//! new, and gives the object back when a later file that also had it goes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::sync::Arc;

use crate::index::{Change, Id, Object};
use crate::model::Finding;
use crate::source::manifest::{Manifest, Parsed, restore};

use report::{duplicate, emptied, with_kept};

mod report;

/// The objects of all files, by file and by object.
#[derive(Debug, Default)]
pub(super) struct Table {
    files: BTreeMap<Arc<OsStr>, File>,
    /// Who holds each object, in the order of paths: the last one counts.
    claims: HashMap<Id, Vec<Claim>>,
    /// The objects that stand in more than one file.
    contested: BTreeSet<Id>,
    /// What counted before the changes that nobody took yet.
    before: BTreeMap<Id, Option<Form>>,
}

#[derive(Debug)]
struct File {
    ids: Vec<Id>,
    findings: Vec<Finding>,
}

#[derive(Debug)]
struct Claim {
    path: Arc<OsStr>,
    form: Form,
    /// The typed object, until the changes are taken.
    fresh: Option<Object>,
}

/// How an object stands in a file. A change of its place alone is passed on as well, since
/// findings name it.
#[derive(Debug, Clone, PartialEq)]
struct Form {
    json: Arc<[u8]>,
    origin: Arc<str>,
}

impl Table {
    /// Takes what a file holds now. What it can no longer be read for keeps its last good form.
    pub(super) fn replace(&mut self, path: &OsStr, manifest: Manifest) {
        let old = self.files.remove(path);
        let path: Arc<OsStr> = path.into();
        let mut findings = Vec::new();
        let objects = last_of_each(manifest.objects, &mut findings);
        let mut ids: Vec<Id> = objects.iter().map(|object| object.id.clone()).collect();
        let gone: Vec<Id> = {
            let new: HashSet<&Id> = ids.iter().collect();
            let old = old.map(|file| file.ids).unwrap_or_default();
            old.into_iter().filter(|id| !new.contains(id)).collect()
        };
        let mut problems = manifest.problems;
        if manifest.blank && !gone.is_empty() {
            problems.push(emptied(&path));
        }
        for id in gone {
            let mut keeps =
                problems.iter_mut().filter(|problem| problem.lost.covers(&id)).peekable();
            if keeps.peek().is_some() {
                ids.push(id);
            } else {
                self.drop_claim(&id, &path);
            }
        }
        let kept = ids.get(objects.len()..).unwrap_or_default();
        findings.extend(problems.into_iter().map(|problem| with_kept(problem, kept)));
        for object in objects {
            self.put_claim(&path, object);
        }
        self.files.insert(path, File { ids, findings });
    }

    /// Forgets a file and all that it held.
    pub(super) fn remove(&mut self, path: &OsStr) {
        for id in self.files.remove(path).map(|file| file.ids).unwrap_or_default() {
            self.drop_claim(&id, path);
        }
    }

    /// Whether no file holds any object.
    pub(super) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// What changed since this was called last, in the order of objects.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (id, before) in std::mem::take(&mut self.before) {
            let mut claims = self.claims.get_mut(&id);
            let fresh = claims.as_mut().and_then(|claims| {
                let fresh = claims.last_mut().and_then(|claim| claim.fresh.take());
                claims.iter_mut().for_each(|claim| claim.fresh = None);
                fresh
            });
            let after = claims.and_then(|claims| claims.last()).map(|claim| &claim.form);
            match after {
                _ if after == before.as_ref() => {}
                None => changes.push(Change::Remove(id)),
                Some(form) => {
                    let Some(object) = fresh.or_else(|| restore(id.kind, &form.json)) else {
                        tracing::error!(object = %id.object_ref(), "its form cannot be read");
                        continue;
                    };
                    let origin = Some(form.origin.clone());
                    changes.push(Change::Put { id, object, origin });
                }
            }
        }
        changes
    }

    /// All that is wrong now. A file in `leaving` is about to go, so what it holds twice with
    /// another, such as its new name, is no news.
    pub(super) fn findings(&self, leaving: impl Fn(&OsStr) -> bool) -> Vec<Finding> {
        let mut findings: Vec<Finding> =
            self.files.values().flat_map(|file| &file.findings).cloned().collect();
        for id in &self.contested {
            let mut claims = self
                .claims
                .get(id)
                .into_iter()
                .flatten()
                .filter(|claim| !leaving(&claim.path))
                .rev();
            let Some(winner) = claims.next() else { continue };
            findings.extend(claims.map(|loser| duplicate(id, &loser.form, &winner.form)));
        }
        findings.sort();
        findings.dedup();
        findings
    }

    fn put_claim(&mut self, path: &Arc<OsStr>, object: Parsed) {
        self.note_before(&object.id);
        let form = Form { json: object.form, origin: object.origin };
        let claim = Claim { path: path.clone(), form, fresh: Some(object.object) };
        let claims = self.claims.entry(object.id.clone()).or_default();
        match claims.binary_search_by(|held| held.path.cmp(path)) {
            Ok(at) => {
                if let Some(held) = claims.get_mut(at) {
                    *held = claim;
                }
            }
            Err(at) => claims.insert(at, claim),
        }
        if claims.len() > 1 {
            self.contested.insert(object.id);
        }
    }

    fn drop_claim(&mut self, id: &Id, path: &OsStr) {
        self.note_before(id);
        if let Some(claims) = self.claims.get_mut(id) {
            claims.retain(|claim| &*claim.path != path);
            if claims.len() < 2 {
                self.contested.remove(id);
            }
            if claims.is_empty() {
                self.claims.remove(id);
            }
        }
    }

    fn note_before(&mut self, id: &Id) {
        if !self.before.contains_key(id) {
            let form = self.claims.get(id).and_then(|claims| claims.last());
            self.before.insert(id.clone(), form.map(|claim| claim.form.clone()));
        }
    }
}

/// The last form of each object of a file; what comes before it is reported.
fn last_of_each(objects: Vec<Parsed>, findings: &mut Vec<Finding>) -> Vec<Parsed> {
    let mut at: HashMap<Id, usize> = HashMap::with_capacity(objects.len());
    let mut kept: Vec<Parsed> = Vec::with_capacity(objects.len());
    for object in objects {
        if let Some(held) = at.get(&object.id).and_then(|at| kept.get_mut(*at)) {
            let form =
                |parsed: &Parsed| Form { json: parsed.form.clone(), origin: parsed.origin.clone() };
            findings.push(duplicate(&object.id, &form(held), &form(&object)));
            *held = object;
        } else {
            at.insert(object.id.clone(), kept.len());
            kept.push(object);
        }
    }
    kept
}

#[cfg(test)]
mod tests;

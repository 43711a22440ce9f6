//! What is known of the objects of an API server, and what has changed of it. Pure: events come in,
//! updates go out.
//!
//! Kept is a hash of what matters of each object. An event that leaves it as it was, such as a
//! node's heartbeat, is no change; and of a new list only what differs is one, with what the list
//! no longer holds.

use std::collections::{BTreeMap, HashMap, HashSet};

use kube::runtime::watcher::Event;

use super::kinds::KINDS;
use super::seen::{Read, Unreadable};
use crate::index::{Change, Id, Object, ObjectKind};
use crate::model::{Finding, ObjectRef};
use crate::source::Update;

/// Everything that is known.
#[derive(Debug, Default)]
pub(super) struct State {
    kinds: BTreeMap<ObjectKind, Kind>,
    /// What nobody took yet: the newest form of each object that changed, `None` for one that is
    /// gone. However long nobody takes it, this does not outgrow the objects.
    pending: BTreeMap<Id, Option<Object>>,
    /// Whether the findings are others than in the last update.
    findings_changed: bool,
    /// Whether the first update was taken.
    begun: bool,
}

/// What is known of one kind.
#[derive(Debug, Default)]
struct Kind {
    /// A hash of what matters of each object.
    known: HashMap<Id, u128>,
    /// What cannot be read, and why.
    unreadable: BTreeMap<ObjectRef, Finding>,
    /// A list that is under way.
    list: Option<List>,
    /// Whether a list was complete.
    listed: bool,
}

/// A list that is under way: nothing of it counts before it is complete.
#[derive(Debug, Default)]
struct List {
    /// Each object that it holds, which is thus not gone.
    held: HashSet<Id>,
    changed: BTreeMap<Id, (Object, u128)>,
    unreadable: Vec<Unreadable>,
}

impl State {
    /// Takes an event of the watch of a kind.
    pub(super) fn take(&mut self, kind: ObjectKind, event: Event<Read>) {
        match event {
            Event::Init => self.kind(kind).list = Some(List::default()),
            Event::InitApply(read) => self.kind(kind).in_list(read),
            Event::InitDone => self.list_is_complete(kind),
            Event::Apply(Read::Object(object)) => {
                let (id, object, hash) = *object;
                self.put(id, object, hash);
            }
            Event::Apply(Read::Unreadable(unreadable)) => self.cannot_read(kind, *unreadable),
            Event::Delete(read) => {
                let (id, object) = match read {
                    Read::Object(object) => (Some(object.0.clone()), object.0.object_ref()),
                    Read::Unreadable(unreadable) => (unreadable.id, unreadable.finding.object),
                };
                self.findings_changed |= self.kind(kind).unreadable.remove(&object).is_some();
                if let Some(id) = id {
                    self.remove(id);
                }
            }
        }
    }

    /// The kinds of which no list was complete yet.
    pub(super) fn missing(&self) -> Vec<ObjectKind> {
        let listed = |kind: &ObjectKind| self.kinds.get(kind).is_some_and(|kind| kind.listed);
        KINDS.into_iter().filter(|kind| !listed(kind)).collect()
    }

    /// How many objects of a kind are known.
    pub(super) fn count(&self, kind: ObjectKind) -> usize {
        self.kinds.get(&kind).map_or(0, |kind| kind.known.len())
    }

    /// Whether there is something to take: once every kind is listed, and then whenever something
    /// changes.
    pub(super) fn has_update(&self) -> bool {
        let news = !self.begun || self.findings_changed || !self.pending.is_empty();
        news && self.missing().is_empty()
    }

    /// What has changed since this was called last.
    pub(super) fn update(&mut self) -> Update {
        self.begun = true;
        self.findings_changed = false;
        let changes = std::mem::take(&mut self.pending).into_iter();
        let changes = changes.map(|(id, object)| match object {
            Some(object) => Change::Put { id, object, origin: None },
            None => Change::Remove(id),
        });
        let findings = self.kinds.values().flat_map(|kind| kind.unreadable.values());
        Update { changes: changes.collect(), findings: findings.cloned().collect() }
    }

    fn kind(&mut self, kind: ObjectKind) -> &mut Kind {
        self.kinds.entry(kind).or_default()
    }

    fn put(&mut self, id: Id, object: Object, hash: u128) {
        let kind = self.kind(id.kind);
        let readable = kind.unreadable.remove(&id.object_ref()).is_some();
        let changed = kind.known.insert(id.clone(), hash) != Some(hash);
        self.findings_changed |= readable;
        if changed {
            self.pending.insert(id, Some(object));
        }
    }

    fn remove(&mut self, id: Id) {
        if self.kind(id.kind).known.remove(&id).is_none() {
            return;
        }
        if self.begun {
            self.pending.insert(id, None);
        } else {
            // Nobody has heard of it.
            self.pending.remove(&id);
        }
    }

    /// An object that cannot be read keeps its last good form.
    fn cannot_read(&mut self, kind: ObjectKind, unreadable: Unreadable) {
        let kind = self.kind(kind);
        let kept = unreadable.id.as_ref().is_some_and(|id| kind.known.contains_key(id));
        let finding = with_consequence(unreadable.finding, kept);
        let old = kind.unreadable.insert(finding.object.clone(), finding.clone());
        self.findings_changed |= old != Some(finding);
    }

    fn list_is_complete(&mut self, of: ObjectKind) {
        let findings_changed = self.findings_changed;
        let kind = self.kind(of);
        let Some(list) = kind.list.take() else { return };
        kind.listed = true;
        let gone: Vec<Id> =
            kind.known.keys().filter(|id| !list.held.contains(*id)).cloned().collect();
        let before = std::mem::take(&mut kind.unreadable);
        for id in gone {
            self.remove(id);
        }
        for (id, (object, hash)) in list.changed {
            self.put(id, object, hash);
        }
        for unreadable in list.unreadable {
            self.cannot_read(of, unreadable);
        }
        // What the list says again is no news.
        self.findings_changed = findings_changed || self.kind(of).unreadable != before;
    }
}

impl Kind {
    fn in_list(&mut self, read: Read) {
        // A server that says an object twice in a list means its newer form.
        let list = self.list.get_or_insert_default();
        match read {
            Read::Object(object) => {
                let (id, object, hash) = *object;
                list.held.insert(id.clone());
                if self.known.get(&id) == Some(&hash) {
                    list.changed.remove(&id);
                } else {
                    list.changed.insert(id, (object, hash));
                }
            }
            Read::Unreadable(unreadable) => {
                list.held.extend(unreadable.id.clone());
                list.unreadable.push(*unreadable);
            }
        }
    }
}

/// The finding, with what follows from it.
fn with_consequence(mut finding: Finding, kept: bool) -> Finding {
    finding.message.push_str(if kept {
        ", so the object's last good form is kept"
    } else {
        ", so the object is left out"
    });
    finding
}

#[cfg(test)]
mod tests;

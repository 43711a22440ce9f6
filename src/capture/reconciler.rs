//! From updates to snapshots, level-based: every change leads to a whole new projection.

use std::sync::Arc;
use std::time::Instant;

use super::held::{Held, Refused};
use crate::index::{self, Index};
use crate::model::{Finding, Findings, MeshNames, Pins, Projection, Registry, ServiceKey};
use crate::source::Update;
use crate::translate::{self, Translator, naming};
use crate::xds::{Fate, Snapshot};

/// What one round of the reconciler came to.
#[derive(Debug)]
pub struct Outcome {
    /// The new snapshot; `None` where the projection is what it was.
    pub snapshot: Option<Arc<Snapshot>>,
    /// When the oldest of the updates came that it is made of; `None` where nobody says.
    pub since: Option<Instant>,
    /// The registry, where it is another than before.
    pub registry: Option<Arc<Registry>>,
    /// All that is wrong now, where it is something else than before.
    pub findings: Option<Findings>,
    /// What is wrong now and was not before, sorted.
    pub appeared: Vec<Finding>,
    /// What was wrong before and is not now, sorted.
    pub vanished: Vec<Finding>,
}

/// What each part found wrong in the last round.
#[derive(Debug, Clone, Default)]
struct Told {
    source: Vec<Finding>,
    index: Findings,
    translation: Findings,
    held: Vec<Finding>,
}

/// The reconciler's state: the index, the last projection and what is wrong with it.
#[derive(Debug)]
pub struct Reconciler {
    index: Index,
    translator: Translator,
    /// Whether a translation has begun and not come to its end.
    pub(super) translating: bool,
    names: MeshNames,
    held: Held,
    pins: Option<Arc<Pins>>,
    /// Whether snapshots are tried first, so that it matters what each was made of.
    tried: bool,
    /// How many refusals it has heard of.
    heard: u64,
    /// Whether something is to be published although nothing is new, since what was published last
    /// went no further.
    again: bool,
    projection: Option<Arc<Projection>>,
    of_source: Vec<Finding>,
    told: Told,
    pub(super) findings: Findings,
}

impl Reconciler {
    /// A reconciler that has seen nothing.
    pub fn new(index: index::Settings, translate: translate::Settings) -> Self {
        Self {
            index: Index::new(index),
            names: translate.names.clone(),
            translator: Translator::new(translate),
            translating: false,
            pins: None,
            tried: false,
            heard: 0,
            again: false,
            held: Held::default(),
            projection: None,
            of_source: Vec::new(),
            told: Told::default(),
            findings: Findings::default(),
        }
    }

    /// Takes an update, without working on it yet.
    pub fn apply(&mut self, update: Update) {
        for change in update.changes {
            self.index.apply(change);
        }
        self.of_source = update.findings;
    }

    /// Takes the network namespaces that are pinned now; `None` where nothing is known of any.
    pub fn pinned(&mut self, pins: Option<Arc<Pins>>) {
        self.pins = pins;
    }

    /// Says whether it will [hear](Self::hear) what becomes of snapshots. Only then do they bear what
    /// they were made of, which otherwise would be kept for the slowest stream.
    pub fn tried(&mut self, tried: bool) {
        self.tried = tried;
    }

    /// Takes in what became of a snapshot. Where it was refused, returns the keys of what is held
    /// back from now on, without working on it yet; `at` is the time, for people to read.
    pub fn hear(&mut self, fate: &Fate, at: &str) -> Vec<ServiceKey> {
        if matches!(fate, Fate::Refused { .. }) {
            self.heard += 1;
            self.again = true;
        }
        let (Fate::Released(snapshot, _) | Fate::Refused { snapshot, .. }) = fate;
        let origin =
            snapshot.origin.clone().and_then(|origin| origin.downcast::<Projection>().ok());
        let Some(origin) = origin else { return Vec::new() };
        let Fate::Refused { node, refusal, .. } = fate else {
            self.held.released(&origin);
            return Vec::new();
        };
        let refused = Refused { node, words: &refusal.words, at };
        self.held.refused(&origin.services, refused, |service| {
            refusal.names.iter().any(|name| naming::bears(&self.names, service, name))
        })
    }

    /// Makes of all that was applied what is to be served. The first round always gives a
    /// snapshot: an empty mesh is a projection too.
    pub fn reconcile(&mut self) -> Outcome {
        let mut projection = Projection { pins: self.pins.clone(), ..self.index.project() };
        self.held.apply(&mut projection.services);
        let projection = Arc::new(projection);
        let same = !self.again
            && self.projection.as_ref().is_some_and(|old| {
                old.services == projection.services
                    && old.pods == projection.pods
                    && old.nodes == projection.nodes
                    && old.pins == projection.pins
            });
        let mut told = Told {
            source: self.of_source.clone(),
            index: projection.findings.clone(),
            translation: self.told.translation.clone(),
            held: self.held.findings().cloned().collect(),
        };
        let snapshot = (!same).then(|| {
            if std::mem::replace(&mut self.translating, true) {
                // It panicked, and what it remembers may be half of one and half of the other.
                self.translator = self.translator.anew();
            }
            let translated = self.translator.translate(&projection);
            self.translating = false;
            told.translation = translated.findings;
            if !self.tried {
                return translated.snapshot;
            }
            let snapshot = Snapshot::clone(&translated.snapshot);
            Arc::new(Snapshot { origin: Some(projection.clone()), heard: self.heard, ..snapshot })
        });
        let before = self.findings.clone();
        self.findings.replace(&self.told.source, &told.source);
        self.findings.follow(&self.told.index, &told.index);
        self.findings.follow(&self.told.translation, &told.translation);
        self.findings.replace(&self.told.held, &told.held);
        self.told = told;
        let (appeared, vanished) = before.changes(&self.findings);
        let news = !(appeared.is_empty() && vanished.is_empty());
        self.projection = Some(projection);
        self.again = false;
        let registry = self.index.registry();
        let findings = news.then(|| self.findings.clone());
        Outcome { snapshot, since: None, registry, findings, appeared, vanished }
    }

    /// The index, to look things up in.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The projection of the last round.
    pub fn projection(&self) -> Option<&Projection> {
        self.projection.as_deref()
    }
}

//! Objects read once and brought all the way to a snapshot, for the commands that only look.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use crate::capture::Reconciler;
use crate::cli::options::Objects;
use crate::index::{self, Change, MANAGED, Object};
use crate::model::{Finding, PodKey, Projection};
use crate::source::pins;
use crate::translate;
use crate::xds::Snapshot;

use super::objects::load;

/// What became of the objects.
#[derive(Debug)]
pub struct Once {
    /// The projection.
    pub projection: Projection,
    /// The snapshot made of it.
    pub snapshot: Arc<Snapshot>,
    /// What the source, the index and the translation found wrong.
    pub findings: Vec<Finding>,
    /// Every pod that was read, managed or not, with what its label `aether.io/managed` says.
    pub pods: BTreeMap<PodKey, Option<String>>,
}

/// Reads all objects once.
///
/// # Errors
/// Where the folder or the API server cannot be read at all; what is wrong with objects is among
/// the findings.
pub fn once(
    objects: &Objects,
    translate: translate::Settings,
    index: index::Settings,
) -> Result<Once> {
    once_with(objects, None, translate, index)
}

/// The same with the network namespaces that are pinned in a folder, by which node proxies are served.
///
/// # Errors
/// Where the objects or the folder cannot be read at all.
pub fn once_with(
    objects: &Objects,
    pins: Option<&Path>,
    translate: translate::Settings,
    index: index::Settings,
) -> Result<Once> {
    let update = load(objects)?;
    let mut pods = BTreeMap::new();
    for change in &update.changes {
        if let Change::Put { id, object: Object::Pod(pod), .. } = change {
            let labels = pod.metadata.labels.as_ref();
            let managed = labels.and_then(|labels| labels.get(MANAGED)).cloned();
            pods.insert(PodKey::new(id.namespace.clone(), id.name.clone()), managed);
        }
    }
    let mut reconciler = Reconciler::new(index, translate);
    reconciler.apply(update);
    reconciler.pinned(pins.map(pins::load).transpose()?.flatten());
    // The first round makes a snapshot even of nothing.
    let outcome = reconciler.reconcile();
    let projection = reconciler.projection().cloned().unwrap_or_default();
    Ok(Once {
        projection,
        snapshot: outcome.snapshot.unwrap_or_default(),
        findings: outcome.appeared,
        pods,
    })
}

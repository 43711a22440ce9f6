//! Where a connection of a pod goes, and why: from objects that are read once.

use anyhow::Result;

use crate::capture::Reconciler;
use crate::cli::options::Objects;
use crate::explain::{self, Evidence, Explanation, Question};
use crate::{index, translate};

use super::objects::load;

/// Reads all objects once, and answers a question of them.
///
/// # Errors
/// Where the folder or the API server cannot be read at all; a pod that is not known is an
/// [`explain::ExplainError`].
pub fn explain(
    question: &Question,
    objects: &Objects,
    translate: translate::Settings,
    index: index::Settings,
) -> Result<Explanation> {
    let update = load(objects)?;
    let settings = translate.clone();
    let mut reconciler = Reconciler::new(index, translate);
    reconciler.apply(update);
    // The first round makes a snapshot even of nothing.
    let outcome = reconciler.reconcile();
    let projection = reconciler.projection().cloned().unwrap_or_default();
    let findings = outcome.appeared.into_iter().map(|finding| (finding, None)).collect();
    let snapshot = outcome.snapshot.unwrap_or_default();
    let evidence =
        Evidence::gather(question, &settings, reconciler.index(), &projection, &snapshot, findings);
    Ok(explain::explain(question, &evidence)?)
}

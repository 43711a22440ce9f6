//! Listed upstreams that no Service bears. They may come, so nothing is left out; but a name that is
//! misspelt reaches nothing, and nobody else would say so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::Holder;
use super::facts::PodFacts;
use super::read::values;
use super::store::Name;
use super::{Report, keys};
use crate::model::{Finding, Reason, ServiceKey, Upstreams};

/// How many of them a finding names.
const NAMED: usize = 5;

/// What was found of each pod that lists its upstreams.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<Name, OfPod>);

/// What was found of one pod, and of which facts.
#[derive(Debug)]
struct OfPod {
    facts: Arc<PodFacts>,
    found: Vec<Finding>,
}

impl Missing {
    /// Looks at the managed pods. `keys` are those that came or went since the last time; a pod that
    /// is as it was and lists none of them is not looked at again.
    pub(super) fn follow<'a>(
        &mut self,
        pods: impl Iterator<Item = (&'a Name, &'a Arc<PodFacts>)>,
        holders: &BTreeMap<ServiceKey, Holder>,
        keys: &BTreeSet<ServiceKey>,
    ) {
        let mut old = std::mem::take(&mut self.0);
        for (name, facts) in pods {
            let Upstreams::Listed(listed) = &facts.upstreams else { continue };
            let kept = old.remove(name).filter(|kept| {
                Arc::ptr_eq(&kept.facts, facts) && !keys.iter().any(|key| listed.contains(key))
            });
            let of = kept.unwrap_or_else(|| {
                let missing = listed.iter().filter(|key| !holders.contains_key(*key));
                let missing: Vec<&ServiceKey> = missing.collect();
                OfPod { facts: facts.clone(), found: report(facts, &missing) }
            });
            self.0.insert(name.clone(), of);
        }
    }

    /// All that was found.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.0.values().flat_map(|of| &of.found)
    }
}

fn report(facts: &PodFacts, missing: &[&ServiceKey]) -> Vec<Finding> {
    if missing.is_empty() {
        return Vec::new();
    }
    let mut words: Vec<String> = missing.iter().take(NAMED).map(ToString::to_string).collect();
    if let Some(more) = missing.len().checked_sub(NAMED).filter(|more| *more > 0) {
        words.push(format!("{more} more"));
    }
    let mut report = Report::new(facts.object.clone(), facts.origin.clone());
    report.warning(
        Reason::Suspicious,
        &values::annotation(keys::UPSTREAMS),
        format!("no mesh service bears {}, so the pod reaches nothing by it", words.join(", ")),
        "correct the name (it is the mesh name, which aether.io/service may make another than the Service's own), or label the Service aether.io/mesh-service=true; once there, it is taken in",
    );
    report.into_findings()
}

//! Listed upstreams that no Service bears. They may come, so nothing is left out; but a name that is
//! misspelt reaches nothing, and nobody else would say so.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::claims::Holder;
use super::facts::PodFacts;
use super::read::values;
use super::store::Name;
use super::told::Told;
use super::{Report, keys};
use crate::model::{Finding, Findings, Reason, ServiceKey, Upstreams};

/// How many of them a finding names.
const NAMED: usize = 5;

/// What was found of each pod that lists its upstreams.
#[derive(Debug, Default)]
pub(super) struct Missing {
    pods: BTreeMap<Name, Arc<PodFacts>>,
    /// Who lists a service, so that those are found whom its coming and going concerns.
    listing: HashMap<ServiceKey, BTreeSet<Name>>,
    told: Told<Name>,
}

impl Missing {
    /// Takes in the pods that changed; with `None` those that are not managed any more. `keys` are
    /// those that came or went since the last time.
    pub(super) fn follow<'a>(
        &mut self,
        changed: impl Iterator<Item = (&'a Name, Option<&'a Arc<PodFacts>>)>,
        holders: &BTreeMap<ServiceKey, Holder>,
        keys: &BTreeSet<ServiceKey>,
        found: &mut Findings,
    ) {
        let mut names = BTreeSet::new();
        for (name, facts) in changed {
            self.forget(name);
            if let Some((facts, listed)) = facts.and_then(|facts| Some((facts, listed(facts)?))) {
                for key in listed {
                    self.listing.entry(key.clone()).or_default().insert(name.clone());
                }
                self.pods.insert(name.clone(), facts.clone());
            }
            names.insert(name.clone());
        }
        let concerned = keys.iter().filter_map(|key| self.listing.get(key)).flatten();
        names.extend(concerned.cloned());
        for name in names {
            let found_now = self.pods.get(&name).map_or_else(Vec::new, |facts| {
                let listed = listed(facts).into_iter().flatten();
                let missing: Vec<_> = listed.filter(|key| !holders.contains_key(*key)).collect();
                report(facts, &missing)
            });
            self.told.set(&name, found_now, found);
        }
    }

    fn forget(&mut self, name: &Name) {
        let Some(old) = self.pods.remove(name) else { return };
        for key in listed(&old).into_iter().flatten() {
            if let Some(names) = self.listing.get_mut(key) {
                names.remove(name);
                if names.is_empty() {
                    self.listing.remove(key);
                }
            }
        }
    }
}

fn listed(facts: &PodFacts) -> Option<&BTreeSet<ServiceKey>> {
    match &facts.upstreams {
        Upstreams::All => None,
        Upstreams::Listed(listed) => Some(listed),
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

//! All that is wrong at one time.

use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::Finding;

/// Findings, sorted, each once however many say it. A clone shares all of them, and two that follow
/// from one another are compared in the time of what differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings(OrdMap<Arc<Finding>, usize>);

impl Findings {
    /// All of them, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.keys().map(Arc::as_ref)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts what somebody finds now in the place of what they found before. What others say too
    /// stays as long as they say it.
    pub fn replace(&mut self, old: &[Finding], new: &[Finding]) {
        if old == new {
            return;
        }
        for finding in old {
            self.drop_one(finding);
        }
        self.extend(new.iter().cloned());
    }

    /// Puts all of what somebody finds now in the place of all that they found before.
    pub fn follow(&mut self, old: &Self, new: &Self) {
        for item in old.0.diff(&new.0) {
            match item {
                DiffItem::Add(finding, _) => self.add(finding.clone()),
                DiffItem::Remove(finding, _) => self.drop_one(finding),
                DiffItem::Update { .. } => {}
            }
        }
    }

    /// What is in the `newer` ones alone, and what is in these alone, each sorted.
    pub fn changes(&self, newer: &Self) -> (Vec<Finding>, Vec<Finding>) {
        let (mut appeared, mut vanished) = (Vec::new(), Vec::new());
        for item in self.0.diff(&newer.0) {
            match item {
                DiffItem::Add(finding, _) => appeared.push(Finding::clone(finding)),
                DiffItem::Remove(finding, _) => vanished.push(Finding::clone(finding)),
                DiffItem::Update { .. } => {}
            }
        }
        (appeared, vanished)
    }

    fn add(&mut self, finding: Arc<Finding>) {
        *self.0.entry(finding).or_insert(0) += 1;
    }

    fn drop_one(&mut self, finding: &Finding) {
        match self.0.get_mut(finding) {
            Some(said) if *said > 1 => *said -= 1,
            Some(_) => {
                self.0.remove(finding);
            }
            None => {}
        }
    }
}

impl Extend<Finding> for Findings {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, more: I) {
        for finding in more {
            self.add(Arc::new(finding));
        }
    }
}

impl FromIterator<Finding> for Findings {
    fn from_iter<I: IntoIterator<Item = Finding>>(all: I) -> Self {
        let mut findings = Self::default();
        findings.extend(all);
        findings
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{ObjectRef, Reason, Severity};

    fn finding(n: u8) -> Finding {
        Finding {
            object: ObjectRef::new("Service", "shop", format!("s{n}")),
            severity: Severity::Problem,
            reason: Reason::InvalidValue,
            origin: None,
            field: String::new(),
            message: String::new(),
            way_out: String::new(),
        }
    }

    fn several() -> impl Strategy<Value = Vec<Finding>> {
        prop::collection::vec((0..60_u8).prop_map(finding), 0..60)
    }

    proptest! {
        #[test]
        fn they_are_what_each_says_now(steps in prop::collection::vec((0..4_usize, several()), 1..12)) {
            let mut said: [Vec<Finding>; 4] = Default::default();
            let (mut all, mut beside) = (Findings::default(), Findings::default());
            for (who, new) in steps {
                let before = all.clone();
                let old = said.get_mut(who).map(|said| std::mem::replace(said, new.clone()));
                all.replace(&old.unwrap_or_default(), &new);
                let expected: BTreeSet<Finding> = said.iter().flatten().cloned().collect();
                prop_assert!(all.iter().eq(&expected));
                prop_assert_eq!(all.len(), expected.len());
                let last: BTreeSet<Finding> = before.iter().cloned().collect();
                let (appeared, vanished) = before.changes(&all);
                prop_assert!(appeared.iter().eq(expected.difference(&last)));
                prop_assert!(vanished.iter().eq(last.difference(&expected)));
                beside.follow(&before, &all);
                prop_assert!(beside.iter().eq(&expected));
            }
            prop_assert_eq!(&all, &said.into_iter().flatten().collect::<Findings>());
        }
    }
}

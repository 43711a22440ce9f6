//! What is told of one look after the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::look::Seen;

/// The namespaces that were last seen.
#[derive(Debug, Default)]
pub(super) struct Register(Seen);

impl Register {
    /// Takes in a look. Returns the pods whose namespaces are pinned, and whether another look is
    /// to follow soon.
    ///
    /// A pod whose namespace is another one under the same path is left out once: a proxy keeps the
    /// socket of a listener whose address is spelled as before, which is in the old namespace, so
    /// that listener has to go before it comes again.
    pub(super) fn take(&mut self, seen: Seen) -> (BTreeSet<Arc<str>>, bool) {
        let replaced = |uid: &Arc<str>, now: &u64| self.0.get(uid).is_some_and(|old| old != now);
        let told: BTreeSet<Arc<str>> = seen
            .iter()
            .filter(|(uid, namespace)| !replaced(uid, namespace))
            .map(|(uid, _)| uid.clone())
            .collect();
        let again = told.len() < seen.len();
        self.0 = seen;
        (told, again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(of: &[(&str, u64)]) -> Seen {
        of.iter().map(|(uid, namespace)| (Arc::from(*uid), *namespace)).collect()
    }

    #[test]
    fn a_namespace_that_takes_the_place_of_another_is_left_out_once() {
        type Step = (&'static [(&'static str, u64)], &'static [&'static str], bool);
        let mut register = Register::default();
        let told = |uids: &[&str]| uids.iter().map(|uid| Arc::from(*uid)).collect::<BTreeSet<_>>();
        let steps: [Step; 7] = [
            (&[("a", 1), ("b", 2)], &["a", "b"], false),
            (&[("a", 1), ("b", 3)], &["a"], true),
            (&[("a", 1), ("b", 3)], &["a", "b"], false),
            // Gone and back with another one: it was left out already.
            (&[("a", 1)], &["a"], false),
            (&[("a", 1), ("b", 4)], &["a", "b"], false),
            (&[], &[], false),
            (&[("a", 5)], &["a"], false),
        ];
        for (look, expected, again) in steps {
            assert_eq!(register.take(seen(look)), (told(expected), again), "{look:?}");
        }
    }
}

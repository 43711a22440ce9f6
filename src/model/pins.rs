//! Pinned network namespaces: the register of the pods that node proxies serve.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The network namespaces that are pinned on this machine, each by a file named by its pod's uid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pins {
    /// The folder of the files, as an Envoy of this machine sees it.
    pub folder: Arc<str>,
    /// The uids of the pods.
    pub uids: BTreeSet<Arc<str>>,
}

impl Pins {
    /// The file that pins the namespace of a pod; `None` where there is none.
    pub fn path(&self, uid: &str) -> Option<String> {
        let pinned = self.uids.contains(uid);
        pinned.then(|| format!("{}/{uid}", self.folder.trim_end_matches('/')))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_path_is_that_of_a_pin_and_of_nothing_else() {
        for folder in ["/run/aether/netns", "/run/aether/netns/"] {
            let pins = Pins { folder: folder.into(), uids: ["a-b".into()].into() };
            assert_eq!(pins.path("a-b").unwrap(), "/run/aether/netns/a-b");
            for other in ["", "a", "../a-b", "a-b/"] {
                assert_eq!(pins.path(other), None, "{other:?}");
            }
        }
    }
}

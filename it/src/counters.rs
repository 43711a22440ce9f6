//! What an Envoy counts, and what it holds, at one moment and at a later one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::envoy::Envoy;
use crate::eventually;

/// Counters and gauges by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Those whose names this pattern finds (see [`Envoy::stats`]).
    pub async fn of(envoy: &Envoy, pattern: &str) -> Result<Self> {
        Ok(Self(envoy.stats(pattern).await?))
    }

    /// One of them; 0 where Envoy has none of this name.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Those that are not 0.
    pub fn present(&self) -> BTreeMap<&str, u64> {
        let present = self.0.iter().filter(|(_, value)| **value != 0);
        present.map(|(name, value)| (name.as_str(), *value)).collect()
    }

    /// By how much each has risen since an earlier moment; those that have not are left out, and so are those that
    /// are gone.
    pub fn since(&self, earlier: &Self) -> BTreeMap<&str, u64> {
        let risen = self
            .0
            .iter()
            .map(|(name, value)| (name.as_str(), value.saturating_sub(earlier.get(name))));
        risen.filter(|(_, by)| *by > 0).collect()
    }

    /// Waits until those of this pattern differ from an earlier moment, and returns them.
    pub async fn after(
        earlier: &Self,
        envoy: &Envoy,
        pattern: &str,
        limit: Duration,
    ) -> Result<Self> {
        let ask = || async {
            let now = Self::of(envoy, pattern).await?;
            ensure!(now != *earlier, "{pattern}: nothing has changed");
            Ok(now)
        };
        eventually("an update", limit, ask).await
    }
}

/// The dynamic resources of an Envoy as its configuration dump has them: content, version, and since when.
#[derive(Debug, Clone, PartialEq)]
pub struct Holdings(BTreeMap<String, Value>);

impl Holdings {
    /// What it holds now.
    pub async fn of(envoy: &Envoy) -> Result<Self> {
        let dump = envoy.config_dump().await?;
        let mut all = BTreeMap::new();
        let configs = dump.get("configs").and_then(Value::as_array);
        for (list, kind, name) in [
            ("dynamic_listeners", "listener", "/name"),
            ("dynamic_route_configs", "routes", "/route_config/name"),
            ("dynamic_active_clusters", "cluster", "/cluster/name"),
            ("dynamic_warming_clusters", "warming cluster", "/cluster/name"),
            ("dynamic_endpoint_configs", "endpoints", "/endpoint_config/cluster_name"),
        ] {
            let lists = configs.into_iter().flatten().filter_map(|config| config.get(list));
            for entry in lists.filter_map(Value::as_array).flatten() {
                let name = entry.pointer(name).and_then(Value::as_str).unwrap_or("?");
                all.insert(format!("{kind} {name}"), entry.clone());
            }
        }
        ensure!(!all.is_empty(), "Envoy's configuration dump has another shape");
        Ok(Self(all))
    }

    /// The names of one kind: `listener`, `routes`, `cluster`, `warming cluster` or `endpoints`.
    pub fn names(&self, kind: &str) -> BTreeSet<String> {
        let names = self.0.keys().filter_map(|key| key.strip_prefix(kind)?.strip_prefix(' '));
        names.map(str::to_owned).collect()
    }

    /// One resource, `cluster http:web.shop.aether.internal`, say.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// What came, went or is not the same any more, each as `<kind> <name>`. A resource that was replaced by an equal
    /// one counts: Envoy notes since when it has it.
    pub fn differences(&self, earlier: &Self) -> BTreeSet<String> {
        let keys = self.0.keys().chain(earlier.0.keys());
        keys.filter(|key| self.0.get(*key) != earlier.0.get(*key)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{Counters, Holdings};

    #[test]
    fn only_what_has_risen_has_risen() {
        let counters = |pairs: &[(&str, u64)]| {
            Counters(pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
        };
        let earlier = counters(&[("a", 1), ("b", 2), ("gone", 3)]);
        let later = counters(&[("a", 1), ("b", 4), ("new", 1), ("none", 0)]);
        assert_eq!(later.since(&earlier), BTreeMap::from([("b", 2), ("new", 1)]));
        assert_eq!(later.present(), BTreeMap::from([("a", 1), ("b", 4), ("new", 1)]));
    }

    #[test]
    fn a_resource_that_was_replaced_by_an_equal_one_differs() {
        let holdings = |since: u32| {
            let kept = ("cluster kept".to_owned(), json!({"last_updated": 1}));
            let renewed = ("cluster renewed".to_owned(), json!({"last_updated": since}));
            Holdings([kept, renewed].into())
        };
        let changed = holdings(2).differences(&holdings(1));
        assert_eq!(changed.into_iter().collect::<Vec<_>>(), ["cluster renewed"]);
        assert!(holdings(1).differences(&holdings(1)).is_empty());
        assert_eq!(holdings(1).names("cluster").len(), 2);
    }
}

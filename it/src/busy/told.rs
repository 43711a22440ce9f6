//! What a caller's proxy was told, by its own counters.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Caller;
use crate::counters::Counters;
use crate::eventually;

/// The responses that an Envoy took in, by type (that of endpoints once for each cluster), those that it refused, and
/// what became of its listeners, chains, routes and clusters.
const TOLD: &str = "^(cluster_manager|listener_manager|http.cap_http|cluster).*(update_success|update_rejected|\
                    config_reload|listener_(added|modified|removed|in_place_updated|create_failure)|\
                    cluster_(added|modified|removed)|_draining)$";

impl Caller {
    /// What it was told so far.
    pub async fn told(&self) -> Result<Counters> {
        Counters::of(&self.envoy, TOLD).await
    }

    /// Waits until it was told exactly this since then, each with how often, and returns what it was told so far. What
    /// comes too much and too late shows in the next such call.
    pub async fn is_told(&self, since: &Counters, expected: &[(&str, u64)]) -> Result<Counters> {
        let expected: BTreeMap<&str, u64> = expected.iter().copied().collect();
        let told = || async {
            let now = self.told().await?;
            let mut told = now.since(since);
            if told.contains_key("cluster_manager.cluster_modified") {
                // A changed cluster counts an answer about its endpoints once more in its old form, unless that is gone
                // by then.
                let clusters = told.iter_mut().filter(|(name, _)| name.starts_with("cluster."));
                clusters.for_each(|(_, count)| *count = 1);
            }
            ensure!(told == expected, "told {told:#?}\nand not {expected:#?}");
            Ok(now)
        };
        let done = eventually("what it is told", Duration::from_secs(20), told).await;
        done.with_context(|| format!("{:?}", self.speaks))
    }
}

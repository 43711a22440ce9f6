//! What a process remembers of what it read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::authority::{Authorities, Der, Now, Pair, Retired};
use super::bundle::{Configuration, Entry};
use super::secret::Secret;
use super::settings::Settings;
use crate::leader::Boot;

/// What a process remembers, whether it leads or not.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// What the Secret held when it could last be read.
    pub good: Option<Authorities>,
    /// What could sign, and whose key the Secret has no more. Another hand may have thrown it out
    /// with nothing ready in its place: certificates can be renewed by it while it is trusted.
    pub lost: Vec<Pair>,
    /// The bundles as they were last read; `None` before.
    pub live: Option<Live>,
    /// What the Secret's annotation last asked for. It goes with a Secret that is deleted.
    pub asked: Option<Arc<str>>,
    /// Since when each retired authority was seen to be retired.
    pub retired: BTreeMap<Der, Boot>,
}

/// The authorities that API servers are told to trust.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// Those in all of our entries, and since when they were there without a gap. An entry without
    /// them is one that fails.
    pub since: BTreeMap<Der, Boot>,
    /// The hosts that API servers call.
    pub hosts: Vec<String>,
    /// How many entries are ours; `None`: there is no configuration.
    pub entries: Option<usize>,
    uid: String,
    generation: i64,
}

impl Memory {
    /// Takes in what was read.
    pub fn observe(&mut self, secret: &Secret, configuration: &Configuration, now: Boot) {
        if let Secret::Found { asked, .. } = secret {
            self.asked.clone_from(asked);
        }
        if let Secret::Found { contents: Ok(authorities), .. } = secret {
            let retired = authorities.retired.iter().map(|retired| retired.authority.der.clone());
            let before = std::mem::take(&mut self.retired);
            let since = |der: Der| {
                let since = before.get(&der).copied().unwrap_or(now);
                (der, since)
            };
            self.retired = retired.map(since).collect();
            let before = self.good.replace(authorities.clone()).unwrap_or_default();
            let pairs = before.signing.into_iter().chain(before.next);
            self.lost.extend(pairs);
            let here = [&authorities.signing, &authorities.next];
            self.lost.retain(|pair| !here.contains(&&Some(pair.clone())));
        }
        match configuration {
            // What was live is live still, as far as anybody here knows. Whether it was so all the
            // time shows the generation, once it is read again.
            Configuration::Unknown(_) => {}
            Configuration::Absent => self.live = Some(Live::default()),
            Configuration::Found { uid, generation, entries, .. } => {
                let before = self.live.take().unwrap_or_default();
                // Two changes of which one was not seen: the bundle may have been another between.
                let without_gap =
                    before.uid == *uid && (0..=1).contains(&(generation - before.generation));
                let since = |der: Der| {
                    let before = before.since.get(&der).copied().filter(|_| without_gap);
                    (der, before.unwrap_or(now))
                };
                self.live = Some(Live {
                    since: in_all(entries).into_iter().map(since).collect(),
                    hosts: entries.iter().filter_map(|entry| entry.host.clone()).collect(),
                    entries: Some(entries.len()),
                    uid: uid.clone(),
                    generation: *generation,
                });
            }
        }
        if let Some(live) = &self.live {
            self.lost.retain(|pair| live.since.contains_key(&pair.authority.der));
        }
    }

    /// Since when an authority is in the live bundle.
    pub fn live_since(&self, der: &Der) -> Option<Boot> {
        self.live.as_ref()?.since.get(der).copied()
    }

    /// When a retired authority is trusted no more: by the calendar, and not before it was seen
    /// here to be retired for two overlaps, since a calendar may jump.
    pub(super) fn over_at(&self, retired: &Retired, settings: &Settings, now: Now) -> Boot {
        let seen = self.retired.get(&retired.authority.der).copied().unwrap_or(now.boot);
        now.boot_at(retired.until).max(seen + settings.overlap * 2)
    }

    /// Whether it is.
    pub fn is_live(&self, der: &Der) -> bool {
        self.live_since(der).is_some()
    }
}

/// What all entries trust.
fn in_all(entries: &[Entry]) -> BTreeSet<Der> {
    let mut all = entries.iter().map(|entry| entry.bundle.ders());
    let first = all.next().unwrap_or_default();
    all.fold(first, |common, ders| common.intersection(&ders).cloned().collect())
}

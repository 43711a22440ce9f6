//! Who is asked first, and what follows from the answers. Pure: time comes in as an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::{CanarySettings, Fate, Grounds};
use crate::xds::{Refusal, Snapshot};

/// All streams that may be chosen, the snapshot that all are served, and the one on trial.
#[derive(Debug)]
pub(in super::super) struct Trials {
    settings: CanarySettings,
    streams: BTreeMap<u64, Stream>,
    last_id: u64,
    released: Option<Arc<Snapshot>>,
    trial: Option<Trial>,
    /// The newest snapshot that came during the trial.
    next: Option<Arc<Snapshot>>,
    /// How many trials ended with a refusal.
    refusals: u64,
}

#[derive(Debug)]
struct Stream {
    node: Arc<str>,
    chosen: bool,
    /// It refused what all others are served, so it says nothing about a new snapshot.
    /// The same where it did not answer in time: silence that is known beforehand only costs time.
    prejudiced: bool,
    /// It refused something on trial, and has not accepted all of a snapshot since. What it refused
    /// is not sent again while it is the same, so its silence is no consent.
    refuses: bool,
}

#[derive(Debug)]
struct Trial {
    snapshot: Arc<Snapshot>,
    deadline: Instant,
    /// The canaries that have not answered.
    asked: BTreeSet<u64>,
}

/// What follows for the world outside.
#[derive(Debug, Default)]
pub(in super::super) struct Said {
    /// Another snapshot is served to all.
    pub released: Option<Arc<Snapshot>>,
    /// The streams to which another snapshot is offered now, as canaries.
    pub ring: Vec<u64>,
    /// For the writer.
    pub fates: Vec<Fate>,
}

impl Trials {
    /// Nothing is served yet.
    pub(in super::super) fn new(settings: CanarySettings) -> Self {
        Self {
            settings,
            streams: BTreeMap::new(),
            last_id: 0,
            released: None,
            trial: None,
            next: None,
            refusals: 0,
        }
    }

    /// The snapshot that a stream is offered.
    pub(in super::super) fn offered(&self, id: u64) -> Option<Arc<Snapshot>> {
        let canary = self.streams.get(&id).is_some_and(|stream| stream.chosen);
        let trial = self.trial.as_ref().filter(|_| canary);
        trial.map(|trial| &trial.snapshot).or(self.released.as_ref()).cloned()
    }

    /// When the trial ends without an answer.
    pub(in super::super) fn deadline(&self) -> Option<Instant> {
        self.trial.as_ref().map(|trial| trial.deadline)
    }

    /// A new snapshot. One that comes during a trial waits for its end, and takes the place of
    /// those that wait: the newest state, never the history. One whose writer had not heard of the
    /// last refusal may have in it what was refused; the writer makes another when it hears.
    pub(in super::super) fn published(&mut self, snapshot: Arc<Snapshot>, now: Instant) -> Said {
        let mut said = Said::default();
        if snapshot.heard < self.refusals {
            return said;
        }
        if self.trial.is_some() {
            self.next = Some(snapshot);
        } else {
            self.begin(snapshot, now, &mut said);
        }
        said
    }

    /// A stream whose node is known.
    pub(in super::super) fn joined(&mut self, node: Arc<str>) -> u64 {
        self.last_id += 1;
        self.streams.insert(
            self.last_id,
            Stream { node, chosen: false, prejudiced: false, refuses: false },
        );
        self.last_id
    }

    /// A stream is gone. A canary that goes without an answer is replaced, so that the trial still
    /// says something; its time is not counted anew.
    pub(in super::super) fn left(&mut self, id: u64, now: Instant) -> Said {
        let mut said = Said::default();
        self.streams.remove(&id);
        self.excuse(id, now, &mut said);
        said
    }

    /// A stream accepted all of a snapshot.
    pub(in super::super) fn settled(&mut self, id: u64, generation: u64, now: Instant) -> Said {
        let mut said = Said::default();
        if self.released.as_ref().is_some_and(|released| released.generation == generation) {
            self.streams.entry(id).and_modify(|stream| stream.prejudiced = false);
        }
        self.streams.entry(id).and_modify(|stream| stream.refuses = false);
        let Some(trial) = &mut self.trial else { return said };
        if trial.snapshot.generation == generation
            && trial.asked.remove(&id)
            && trial.asked.is_empty()
        {
            self.release(Grounds::Accepted, now, &mut said);
        }
        said
    }

    /// A stream refused something of a snapshot.
    pub(in super::super) fn refused(&mut self, id: u64, refusal: &Refusal, now: Instant) -> Said {
        let mut said = Said::default();
        let Some(stream) = self.streams.get_mut(&id) else { return said };
        let on_trial = self.trial.as_ref().is_some_and(|trial| {
            trial.snapshot.generation == refusal.generation && trial.asked.contains(&id)
        });
        // What it says of what all others took, now or before, is no news about this one.
        if !on_trial || stream.prejudiced && refusal.repeated {
            stream.prejudiced |= !on_trial;
            self.excuse(id, now, &mut said);
            return said;
        }
        stream.refuses = true;
        let node = stream.node.clone();
        if let Some(Trial { snapshot, .. }) = self.trial.take() {
            // What waits was made by a writer that had not heard of it.
            self.refusals += 1;
            self.next = None;
            said.fates.push(Fate::Refused { snapshot, node, refusal: refusal.clone() });
        }
        said
    }

    /// Time has passed. Who has not answered by now is not asked again before it has accepted what
    /// all others have. Silence is taken for consent, but not that of a stream which refused
    /// something before: another is asked in its place, with as much time.
    pub(in super::super) fn tick(&mut self, now: Instant) -> Said {
        let mut said = Said::default();
        let Some(trial) = self.trial.as_mut().filter(|trial| trial.deadline <= now) else {
            return said;
        };
        let silent = std::mem::take(&mut trial.asked);
        let mut refusing = 0;
        for id in silent {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            stream.chosen = false;
            stream.prejudiced = true;
            refusing += usize::from(stream.refuses);
        }
        if refusing == 0 {
            self.release(Grounds::TimePassed, now, &mut said);
            return said;
        }
        trial.deadline = now + self.settings.wait;
        // Where nobody is left to be asked the trial ends, and another may begin.
        for _ in 0..refusing {
            if said.released.is_none() {
                self.replace(now, &mut said);
            }
        }
        said
    }

    /// Asks a canary no more, if it was asked, and another in its place.
    fn excuse(&mut self, id: u64, now: Instant, said: &mut Said) {
        if self.trial.as_mut().is_some_and(|trial| trial.asked.remove(&id)) {
            self.streams.entry(id).and_modify(|stream| stream.chosen = false);
            self.replace(now, said);
        }
    }

    fn begin(&mut self, snapshot: Arc<Snapshot>, now: Instant, said: &mut Said) {
        // A stream whose node this snapshot does not know says nothing about it.
        let known = |node: &str| snapshot.nodes.contains_key(node);
        for stream in self.streams.values_mut() {
            stream.chosen &= known(&stream.node) && !stream.prejudiced;
        }
        while self.canaries().count() < self.settings.streams
            && let Some(id) = self.choose(known)
        {
            self.streams.entry(id).and_modify(|stream| stream.chosen = true);
        }
        let asked: BTreeSet<u64> = self.canaries().collect();
        said.ring.extend(&asked);
        let grounds = asked.is_empty().then_some(Grounds::Unasked);
        self.trial = Some(Trial { snapshot, deadline: now + self.settings.wait, asked });
        if let Some(grounds) = grounds {
            self.release(grounds, now, said);
        }
    }

    fn canaries(&self) -> impl Iterator<Item = u64> {
        self.streams.iter().filter(|(_, stream)| stream.chosen).map(|(id, _)| *id)
    }

    /// The next canary: of the kind of node that has the fewest, whoever is connected longest.
    fn choose(&self, known: impl Fn(&str) -> bool) -> Option<u64> {
        let mut chosen: BTreeMap<&str, usize> = BTreeMap::new();
        for stream in self.streams.values().filter(|stream| stream.chosen) {
            *chosen.entry(stream.kind()).or_default() += 1;
        }
        let free = self
            .streams
            .iter()
            .filter(|(_, stream)| !stream.chosen && !stream.prejudiced && known(&stream.node));
        let best = free.min_by_key(|(id, stream)| {
            (chosen.get(stream.kind()).copied().unwrap_or_default(), **id)
        });
        best.map(|(id, _)| *id)
    }

    /// Asks another in the place of a canary that will not answer.
    fn replace(&mut self, now: Instant, said: &mut Said) {
        let Some(trial) = &self.trial else { return };
        let snapshot = trial.snapshot.clone();
        if let Some(id) = self.choose(|node| snapshot.nodes.contains_key(node)) {
            self.streams.entry(id).and_modify(|stream| stream.chosen = true);
            self.trial.iter_mut().for_each(|trial| {
                trial.asked.insert(id);
            });
            said.ring.push(id);
        } else if self.trial.as_ref().is_some_and(|trial| trial.asked.is_empty()) {
            let grounds = match self.canaries().next() {
                Some(_) => Grounds::Accepted,
                None => Grounds::Unasked,
            };
            self.release(grounds, now, said);
        }
    }

    fn release(&mut self, grounds: Grounds, now: Instant, said: &mut Said) {
        if let Some(Trial { snapshot, .. }) = self.trial.take() {
            self.released = Some(snapshot.clone());
            said.released = Some(snapshot.clone());
            said.fates.push(Fate::Released(snapshot, grounds));
        }
        self.go_on(now, said);
    }

    fn go_on(&mut self, now: Instant, said: &mut Said) {
        if let Some(next) = self.next.take() {
            self.begin(next, now, said);
        }
    }
}

impl Stream {
    /// The kind of node: what stands before the first slash of its id.
    fn kind(&self) -> &str {
        self.node.split_once('/').map_or("", |(kind, _)| kind)
    }
}

//! Trials as histories: who is asked, who is served what, and what the writer hears.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{CanarySettings, Fate, Grounds, Said, Trials};
use crate::random::Random;
use crate::xds::{Kind, NodeSpec, Refusal, Snapshot};

const WAIT: Duration = Duration::from_secs(5);

fn snapshot(generation: u64, nodes: &[&str]) -> Arc<Snapshot> {
    after(0, generation, nodes)
}

/// The same of a writer that has heard of so many refusals.
fn after(heard: u64, generation: u64, nodes: &[&str]) -> Arc<Snapshot> {
    let spec = || {
        Arc::new(NodeSpec {
            group: "g".into(),
            lenses: vec![],
            own: vec![],
            identity: None,
            retry: false,
        })
    };
    let nodes = nodes.iter().map(|node| (Arc::<str>::from(*node), spec())).collect();
    Arc::new(Snapshot { generation, heard, nodes, ..Snapshot::default() })
}

fn refusal(generation: u64, repeated: bool) -> Refusal {
    Refusal { kind: Kind::Cluster, words: "no".into(), names: vec![], generation, repeated }
}

fn trials(streams: usize) -> Trials {
    Trials::new(CanarySettings { streams, wait: WAIT })
}

fn released(said: &Said) -> Option<u64> {
    said.released.as_ref().map(|snapshot| snapshot.generation)
}

fn offered(trials: &Trials, id: u64) -> Option<u64> {
    trials.offered(id).map(|snapshot| snapshot.generation)
}

const NODES: [&str; 4] = ["pod/a/1", "pod/a/2", "pod/a/3", "node/n"];

/// Streams of all nodes, which are served generation 1.
fn mesh(streams: usize, now: Instant) -> Trials {
    let mut trials = trials(streams);
    assert_eq!(released(&trials.published(snapshot(1, &NODES), now)), Some(1));
    for (node, id) in NODES.into_iter().zip(1..) {
        assert_eq!(trials.joined(node.into()), id);
    }
    trials
}

#[test]
fn without_canaries_a_snapshot_goes_to_all_at_once() {
    let now = Instant::now();
    let mut trials = mesh(0, now);
    let said = trials.published(snapshot(2, &NODES), now);
    assert_eq!((released(&said), said.ring.len()), (Some(2), 0));
    assert!(matches!(said.fates[..], [Fate::Released(_, Grounds::Unasked)]));
}

#[test]
fn both_kinds_of_nodes_are_asked_and_the_others_wait_for_the_last_answer() {
    let now = Instant::now();
    let mut trials = mesh(2, now);
    let said = trials.published(snapshot(2, &NODES), now);
    assert_eq!((released(&said), said.ring), (None, vec![1, 4]));
    assert_eq!([1, 2, 3, 4].map(|id| offered(&trials, id)), [2, 1, 1, 2].map(Some));
    assert_eq!(released(&trials.settled(1, 2, now)), None);
    assert_eq!(released(&trials.settled(2, 2, now)), None, "who was not asked does not count");
    assert_eq!(released(&trials.settled(4, 1, now)), None, "it is another that was accepted");
    let said = trials.settled(4, 2, now);
    assert_eq!(released(&said), Some(2));
    assert!(matches!(said.fates[..], [Fate::Released(_, Grounds::Accepted)]));
    assert_eq!(offered(&trials, 3), Some(2));
}

#[test]
fn one_refusal_stops_it_and_the_writer_hears_whose() {
    let now = Instant::now();
    let mut trials = mesh(2, now);
    trials.published(snapshot(2, &NODES), now);
    trials.settled(1, 2, now);
    let said = trials.refused(4, &refusal(2, false), now);
    let [Fate::Refused { snapshot: refused, node, .. }] = &said.fates[..] else {
        panic!("{said:?}")
    };
    assert_eq!((refused.generation, &**node), (2, "node/n"));
    assert_eq!((released(&said), trials.deadline()), (None, None));
    assert_eq!([1, 2].map(|id| offered(&trials, id)), [1, 1].map(Some));
    // Later answers to it change nothing; what the writer makes of it is tried like any other.
    assert!(trials.settled(4, 2, now).fates.is_empty());
    assert_eq!(trials.published(after(1, 3, &NODES), now).ring, [1, 4]);
}

#[test]
fn what_was_made_before_its_writer_heard_of_the_refusal_is_not_tried() {
    let now = Instant::now();
    let mut trials = mesh(1, now);
    trials.published(snapshot(2, &NODES), now);
    trials.published(snapshot(3, &NODES), now);
    let said = trials.refused(1, &refusal(2, false), now);
    assert_eq!((said.ring.len(), trials.deadline()), (0, None), "3 has in it what was refused");
    assert!(trials.published(snapshot(4, &NODES), now).ring.is_empty(), "and so has 4");
    assert_eq!(trials.published(after(1, 5, &NODES), now).ring, [1]);
    assert_eq!(released(&trials.settled(1, 5, now)), Some(5));
}

#[test]
fn the_silence_of_whoever_refused_is_no_consent() {
    let now = Instant::now();
    let mut trials = mesh(1, now);
    trials.published(snapshot(2, &NODES), now);
    trials.refused(1, &refusal(2, false), now);
    // It has the refused form still before it, which is not sent again.
    trials.published(after(1, 3, &NODES), now);
    let said = trials.tick(now + WAIT);
    assert_eq!((released(&said), said.ring), (None, vec![2]));
    assert_eq!(trials.deadline(), Some(now + WAIT + WAIT));
    assert_eq!(released(&trials.settled(2, 3, now)), Some(3));
    // Until it has what all others have, it is not asked; then it may be again.
    assert_eq!(trials.published(after(1, 4, &NODES), now).ring, [2]);
    trials.settled(1, 3, now);
    assert_eq!(trials.left(2, now).ring, [1]);
}

#[test]
fn a_refusal_says_nothing_of_another_snapshot_than_its_own() {
    let now = Instant::now();
    let mut trials = mesh(1, now);
    trials.published(snapshot(2, &NODES), now);
    // The answer to what it was sent of 1 comes only now.
    let said = trials.refused(1, &refusal(1, false), now);
    assert_eq!((said.fates.len(), said.ring), (0, vec![2]));
    assert_eq!(released(&trials.settled(2, 2, now)), Some(2));
}

#[test]
fn whoever_kept_all_waiting_once_is_not_asked_until_it_has_what_all_have() {
    let now = Instant::now();
    let mut trials = mesh(1, now);
    trials.published(snapshot(2, &NODES), now);
    assert_eq!(released(&trials.tick(now + WAIT)), Some(2));
    assert_eq!(trials.published(snapshot(3, &NODES), now).ring, [2]);
    trials.settled(2, 3, now);
    trials.settled(1, 3, now);
    trials.left(2, now);
    assert_eq!(trials.published(snapshot(4, &NODES), now).ring, [1]);
}

#[test]
fn silence_ends_with_the_time_and_not_before() {
    let now = Instant::now();
    let mut trials = mesh(1, now);
    trials.published(snapshot(2, &NODES), now);
    assert_eq!(trials.deadline(), Some(now + WAIT));
    let before = WAIT.saturating_sub(Duration::from_millis(1));
    assert_eq!(released(&trials.tick(now + before)), None);
    let said = trials.tick(now + WAIT);
    assert_eq!(released(&said), Some(2));
    assert!(matches!(said.fates[..], [Fate::Released(_, Grounds::TimePassed)]));
}

#[test]
fn of_what_comes_meanwhile_the_newest_is_tried_next() {
    let now = Instant::now();
    let mut trials = mesh(1, now);
    trials.published(snapshot(2, &NODES), now);
    trials.published(snapshot(3, &NODES), now);
    trials.published(snapshot(4, &NODES), now);
    assert_eq!(offered(&trials, 1), Some(2));
    let said = trials.settled(1, 2, now);
    assert_eq!((released(&said), said.ring), (Some(2), vec![1]));
    assert_eq!((offered(&trials, 1), offered(&trials, 2)), (Some(4), Some(2)));
}

#[test]
fn a_canary_that_goes_is_replaced_within_the_same_time() {
    let now = Instant::now();
    let mut trials = mesh(1, now);
    trials.published(snapshot(2, &NODES), now);
    let later = now + Duration::from_secs(1);
    assert_eq!(trials.left(1, later).ring, [2]);
    assert_eq!(trials.deadline(), Some(now + WAIT));
    assert!(trials.left(3, later).ring.is_empty(), "it was not asked");
    assert_eq!(trials.left(2, later).ring, [4]);
    // Nobody is left.
    let said = trials.left(4, later);
    assert_eq!(released(&said), Some(2));
    assert!(matches!(said.fates[..], [Fate::Released(_, Grounds::Unasked)]));
}

#[test]
fn whoever_refuses_what_all_others_are_served_is_no_judge() {
    let now = Instant::now();
    let mut trials = mesh(1, now);
    assert!(trials.refused(1, &refusal(1, false), now).fates.is_empty());
    assert_eq!(trials.published(snapshot(2, &NODES), now).ring, [2]);
    trials.settled(2, 2, now);
    // A canary that was chosen before it turned out to be one.
    assert!(trials.refused(2, &refusal(2, false), now).fates.is_empty());
    trials.published(snapshot(3, &NODES), now);
    assert_eq!(offered(&trials, 2), Some(2));
}

#[test]
fn a_stream_whose_node_waits_is_not_asked() {
    let now = Instant::now();
    let mut trials = mesh(4, now);
    assert_eq!(trials.published(snapshot(2, &NODES[1..3]), now).ring, [2, 3]);
}

/// Whatever happens, a trial ends in time, no stream but a canary sees a snapshot before it is
/// released, what is released never gets older, and the writer hears of each trial once.
#[test]
fn any_history_ends_with_the_newest_or_a_refusal() {
    for seed in 1..=3000 {
        let mut random = Random::new(seed);
        let mut now = Instant::now();
        let streams = usize::try_from(random.below(4)).unwrap();
        let mut trials = trials(streams);
        let (mut last, mut live, mut fates) = (0, Vec::new(), Vec::new());
        let (mut newest, mut refusals, mut heard) = (0, 0, 0);
        for _ in 0..60 {
            let said = match random.below(10) {
                0..3 => {
                    // The writer may hear of a refusal late.
                    heard = if random.chance(50) { refusals } else { heard };
                    newest += 1;
                    trials.published(after(heard, newest, &NODES), now)
                }
                3 | 4 => {
                    live.push(trials.joined((*random.of(&NODES)).into()));
                    Said::default()
                }
                5 if !live.is_empty() => {
                    let gone = *random.of(&live);
                    live.retain(|id| *id != gone);
                    trials.left(gone, now)
                }
                6 if !live.is_empty() => {
                    let id = *random.of(&live);
                    let generation = offered(&trials, id).unwrap_or_default();
                    trials.refused(id, &refusal(generation, random.chance(50)), now)
                }
                7 | 8 if !live.is_empty() => {
                    let id = *random.of(&live);
                    trials.settled(id, offered(&trials, id).unwrap_or_default(), now)
                }
                _ => {
                    now += Duration::from_secs(1);
                    trials.tick(now)
                }
            };
            for fate in &said.fates {
                let (Fate::Released(snapshot, _) | Fate::Refused { snapshot, .. }) = fate;
                fates.push(snapshot.generation);
                refusals += u64::from(matches!(fate, Fate::Refused { .. }));
            }
            if let Some(generation) = released(&said) {
                assert!(generation > last, "seed {seed}");
                last = generation;
            }
            assert!(trials.deadline().is_none_or(|deadline| deadline <= now + WAIT));
            let ahead = live.iter().filter(|id| offered(&trials, **id) > Some(last)).count();
            assert!(ahead <= streams, "seed {seed}");
        }
        newest += 1;
        let mut said = vec![trials.published(after(refusals, newest, &NODES), now)];
        // One trial may go on and the newest waits; each may ask every stream in turn.
        for _ in 0..2 * live.len() + 2 {
            now += WAIT;
            said.push(trials.tick(now));
        }
        for said in said {
            last = released(&said).unwrap_or(last);
            for fate in &said.fates {
                let (Fate::Released(snapshot, _) | Fate::Refused { snapshot, .. }) = fate;
                fates.push(snapshot.generation);
            }
        }
        assert_eq!(trials.deadline(), None, "seed {seed}");
        assert_eq!(last, newest, "seed {seed}");
        assert!(fates.is_sorted_by(|a, b| a < b), "seed {seed}: {fates:?}");
    }
}

//! Many processes in worlds of faults: never two that may write, always one again once it can be.

use std::time::Duration;

use super::world::{Event, World};
use crate::leader::Settings;
use crate::random::Random;

/// How long faults go on, in milliseconds.
const TROUBLE: u64 = 120_000;
/// How long it may take to have a leader afterwards: a lease duration, by the slowest clock, and
/// the longest pause.
const SETTLES: u64 = 30_000;

fn never_two(world: &World) {
    let leaders = world.leaders();
    assert!(leaders.len() <= 1, "at {} ms {leaders:?} lead at once", world.now);
}

/// Throws faults of all kinds into a world, all over by the end of [`TROUBLE`].
fn trouble(world: &mut World, random: &mut Random, deletes: bool) {
    let count = world.processes.len();
    let mut alive = count;
    for _ in 0..random.below(40) {
        let at = usize::try_from(random.below(count as u64)).unwrap();
        let time = random.below(TROUBLE - 1000);
        let over = (time + random.below(40_000)).min(TROUBLE);
        match random.below(9) {
            0 | 1 => {
                world.at(time, at, Event::Freeze);
                world.at(over, at, Event::Thaw);
            }
            2 | 3 => {
                world.at(time, at, Event::Cut);
                world.at(over, at, Event::Heal);
            }
            4 | 5 => world.at(time, at, Event::Rewatch),
            6 => world.at(time, at, Event::Edit),
            7 if alive > 2 => {
                alive -= 1;
                world.at(time, at, if random.chance(50) { Event::Stop } else { Event::Kill });
            }
            8 if deletes => world.at(time, at, Event::Delete),
            _ => {}
        }
    }
}

fn settings(random: &mut Random) -> Settings {
    let all = [(15, 10, 2000), (15, 12, 5000), (15, 5, 500), (20, 10, 5000)];
    let (duration, deadline, interval) = all[usize::try_from(random.below(4)).unwrap()];
    let seconds = Duration::from_secs;
    Settings::new(seconds(duration), seconds(deadline), Duration::from_millis(interval)).unwrap()
}

fn world(seed: u64, deletes: bool) -> (World, Random) {
    let mut random = Random::new(seed);
    let count = 1 + usize::try_from(random.below(5)).unwrap();
    let mut world = World::new(count, settings(&mut random), seed);
    world.lost = random.below(4) * 10;
    world.late = random.below(3) * 10;
    world.delay = [5, 50, 1500][usize::try_from(random.below(3)).unwrap()];
    trouble(&mut world, &mut random, deletes);
    (world, random)
}

/// No fault any more: within a bound one leads, and goes on leading.
fn settles(world: &mut World, seed: u64, check: fn(&World)) {
    (world.lost, world.late, world.delay) = (0, 0, 5);
    world.run(TROUBLE + SETTLES, check);
    let stopped = |at: &usize| {
        let process = &world.processes[*at];
        process.dead
            || process.election.clone().step(crate::leader::Boot::NEVER)
                == crate::leader::Step::Done
    };
    if (0..world.processes.len()).all(|at| stopped(&at)) {
        return;
    }
    let leaders = world.leaders();
    assert_eq!(
        leaders.len(),
        1,
        "seed {seed}: after {SETTLES} ms without a fault {leaders:?} lead"
    );
    let term = world.processes[leaders[0]].election.term().unwrap().number;
    world.run(TROUBLE + SETTLES + 60_000, |world| {
        assert_eq!(world.leaders(), leaders, "seed {seed}, at {} ms", world.now);
    });
    assert_eq!(world.processes[leaders[0]].election.term().unwrap().number, term, "seed {seed}");
}

#[test]
fn never_two_lead_and_soon_one_does() {
    let (mut led, mut terms) = (0, 0);
    for seed in 0..3000 {
        let (mut world, _) = world(seed, false);
        world.run(TROUBLE, |world| {
            never_two(world);
            led += u64::from(world.leaders().len() == 1);
        });
        settles(&mut world, seed, never_two);
        let of = |process: &super::world::Process| process.election.term().map_or(0, |t| t.number);
        terms += world.processes.iter().map(of).sum::<u64>();
    }
    // The worlds are not so bad that nobody ever leads.
    assert!(led > 100_000 && terms > 4000, "{led} {terms}");
}

/// Whoever deletes the Lease hands over at once, without asking its holder: then two may lead for
/// a moment. But there is one leader soon.
#[test]
fn a_lease_that_is_deleted_comes_back() {
    for seed in 5000..6000 {
        let (mut world, _) = world(seed, true);
        world.run(TROUBLE, |_| {});
        settles(&mut world, seed, |_| {});
    }
}

#[test]
fn the_hand_over_takes_less_than_a_second() {
    for seed in 0..200 {
        let mut world = World::new(3, Settings::default(), seed);
        world.run(20_000, never_two);
        let leader = world.leaders()[0];
        world.at(20_000, leader, Event::Stop);
        world.run(20_000, never_two);
        assert!(world.leaders().is_empty(), "the old leader stops at once");
        world.run(20_900, never_two);
        let leaders = world.leaders();
        assert!(leaders.len() == 1 && leaders[0] != leader, "seed {seed}: {leaders:?}");
    }
}

#[test]
fn the_lease_of_a_killed_leader_is_taken_when_it_has_expired_and_not_before() {
    for seed in 0..200 {
        let mut world = World::new(3, Settings::default(), seed);
        world.run(20_000, never_two);
        let leader = world.leaders()[0];
        world.at(20_000, leader, Event::Kill);
        // The last renewal is at most 2.2 s old, and no clock is off by more than a twentieth.
        world.run(32_000, |world| assert!(world.leaders().is_empty() || world.now < 20_000));
        world.run(36_500, never_two);
        assert_eq!(world.leaders().len(), 1, "seed {seed}");
    }
}

#[test]
fn candidates_watch_and_never_ask() {
    let mut world = World::new(5, Settings::default(), 1);
    world.run(5_000, never_two);
    world.requests.clear();
    world.run(605_000, never_two);
    let holds = world.requests.iter().filter(|request| **request == "hold").count();
    assert_eq!(holds, world.requests.len(), "{:?}", world.requests);
    assert!((270..=330).contains(&holds), "one leader renews every two seconds: {holds}");
}

#[test]
fn a_leader_that_was_frozen_leads_no_more() {
    for seed in 0..200 {
        let mut world = World::new(2, Settings::default(), seed);
        world.run(20_000, never_two);
        let leader = world.leaders()[0];
        world.at(20_000, leader, Event::Freeze);
        world.at(80_000, leader, Event::Thaw);
        world.run(200_000, |world| {
            never_two(world);
            assert!(world.now < 35_000 || world.leaders() != [leader], "at {} ms", world.now);
        });
        assert_eq!(world.leaders().len(), 1);
    }
}

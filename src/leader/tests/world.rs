//! A world of processes and one API server, by discrete events: what is sent takes time, is lost,
//! arrives late; processes stop and go on; clocks run at speeds of their own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use crate::leader::{Answer, Boot, Election, Record, Request, Settings, Step};
use crate::random::Random;

pub type Seen = Option<Record<()>>;

/// What happens. Times are milliseconds of the world.
#[derive(Debug, Clone)]
pub enum Event {
    /// The process looks at what is to be done.
    Wake,
    /// A request reaches the API server.
    Arrives(u64, Request<()>),
    /// An answer reaches the process.
    Reply(u64, Answer<()>),
    /// The process gives up waiting.
    GivesUp(u64),
    /// The watch delivers; the number is that of the connection.
    Watched(u64, Seen),
    /// SIGSTOP and SIGCONT.
    Freeze,
    Thaw,
    /// Nothing gets to or from the process.
    Cut,
    Heal,
    /// The watch is closed and opened again.
    Rewatch,
    /// SIGTERM.
    Stop,
    /// SIGKILL.
    Kill,
    /// Somebody edits the Lease without changing its holder.
    Edit,
    /// Somebody deletes the Lease.
    Delete,
}

/// One process.
pub struct Process {
    pub election: Election<()>,
    offset: u64,
    /// In thousandths.
    rate: u64,
    frozen: bool,
    pub cut: bool,
    pub dead: bool,
    waiting: Option<u64>,
    missed: Vec<Event>,
    pub watch: u64,
    pub watched_until: u64,
    alarm: Option<u64>,
}

/// The world.
pub struct World {
    pub now: u64,
    pub processes: Vec<Process>,
    pub lease: Seen,
    pub requests: Vec<&'static str>,
    pub version: u64,
    queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Option<Event>>,
    pub random: Random,
    /// Chance in percent that a request, or an answer, is lost; and that one takes long.
    pub lost: u64,
    pub late: u64,
    pub delay: u64,
}

pub fn identity(process: usize) -> Arc<str> {
    format!("p{process}").into()
}

impl World {
    pub fn new(count: usize, settings: Settings, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let process = |at: usize| Process {
            election: Election::new(settings, identity(at)),
            offset: 1000 * random.below(1_000_000),
            rate: 950 + random.below(100),
            frozen: false,
            cut: false,
            dead: false,
            waiting: None,
            missed: Vec::new(),
            watch: 0,
            watched_until: 0,
            alarm: None,
        };
        let processes = (0..count).map(process).collect();
        let mut world = Self {
            now: 0,
            processes,
            lease: None,
            requests: Vec::new(),
            version: 0,
            queue: BinaryHeap::new(),
            events: Vec::new(),
            random: Random::new(seed.wrapping_add(77)),
            lost: 0,
            late: 0,
            delay: 20,
        };
        for at in 0..count {
            let start = world.random.below(50);
            world.after(start, at, Event::Rewatch);
        }
        world
    }

    pub fn at(&mut self, time: u64, process: usize, event: Event) {
        self.events.push(Some(event));
        let number = self.events.len() - 1;
        self.queue.push(Reverse((time, number as u64, process)));
    }

    pub fn after(&mut self, delay: u64, process: usize, event: Event) {
        self.at(self.now + delay, process, event);
    }

    /// The processes that would write now if they asked.
    pub fn leaders(&self) -> Vec<usize> {
        let leads = |process: &Process| {
            !process.dead
                && process.election.leads_until().is_some_and(|at| at > self.boot(process))
        };
        (0..self.processes.len()).filter(|at| leads(&self.processes[*at])).collect()
    }

    /// Lets time go on, event by event, and calls `check` after each.
    pub fn run(&mut self, until: u64, mut check: impl FnMut(&Self)) {
        while let Some(Reverse((time, number, process))) = self.queue.peek().copied() {
            if time > until {
                break;
            }
            self.queue.pop();
            self.now = time.max(self.now);
            let event = self.events[usize::try_from(number).unwrap()].take().unwrap();
            self.happens(process, event);
            check(self);
        }
        self.now = until;
        check(self);
    }

    fn boot(&self, process: &Process) -> Boot {
        Boot(Duration::from_micros(process.offset * 1000 + self.now * process.rate))
    }

    pub fn takes(&mut self) -> u64 {
        let long = self.random.chance(self.late);
        if long { self.random.below(25_000) } else { 1 + self.random.below(self.delay) }
    }

    fn happens(&mut self, at: usize, event: Event) {
        if let Event::Arrives(number, request) = event {
            return self.arrives(at, number, &request);
        }
        let now = self.now;
        let process = &mut self.processes[at];
        match event {
            _ if process.dead => return,
            Event::Wake if process.alarm != Some(now) => return,
            Event::Thaw => {
                process.frozen = false;
                process.alarm = None;
                let missed = std::mem::take(&mut process.missed);
                for event in missed {
                    self.after(0, at, event);
                }
            }
            Event::Kill => process.dead = true,
            Event::Cut => {
                process.cut = true;
                process.watch += 1;
            }
            Event::Edit => return self.change(|lease| lease),
            Event::Delete => return self.change(|_| None),
            Event::Freeze => process.frozen = true,
            event if process.frozen => return process.missed.push(event),
            Event::Heal => {
                process.cut = false;
                self.watch_again(at);
            }
            Event::Rewatch => self.watch_again(at),
            Event::Stop => process.election.stop(),
            event => self.delivered(at, event),
        }
        self.wake(at);
    }

    fn delivered(&mut self, at: usize, event: Event) {
        let now = self.boot(&self.processes[at]);
        let process = &mut self.processes[at];
        match event {
            Event::Reply(number, answer) if process.waiting == Some(number) && !process.cut => {
                process.waiting = None;
                process.election.answered(answer, now);
            }
            Event::GivesUp(number) if process.waiting == Some(number) => {
                process.waiting = None;
                process.election.answered(Answer::Failed, now);
            }
            Event::Watched(watch, seen) if process.watch == watch && !process.cut => {
                process.election.seen(seen, now);
            }
            _ => {}
        }
    }

    /// A process that is not frozen does what is to be done.
    fn wake(&mut self, at: usize) {
        let now = self.boot(&self.processes[at]);
        let time = self.now;
        let process = &mut self.processes[at];
        if process.frozen || process.dead {
            return;
        }
        process.alarm = process.alarm.filter(|alarm| *alarm > time);
        match process.election.step(now) {
            Step::Done | Step::Wait(None) => {}
            Step::Wait(Some(until)) => {
                let left = u64::try_from(until.since(now).as_micros()).unwrap();
                let alarm = time + left.div_ceil(process.rate).clamp(1, 1_000_000);
                if process.alarm.is_none_or(|set| set > alarm) {
                    process.alarm = Some(alarm);
                    self.at(alarm, at, Event::Wake);
                }
            }
            Step::Send(request, limit) => {
                let number = self.events.len() as u64;
                process.waiting = Some(number);
                self.requests.push(match request {
                    Request::Read => "read",
                    Request::Create => "create",
                    Request::Hold(_) => "hold",
                    Request::Release(_) => "release",
                });
                let limit = u64::try_from(limit.as_millis()).unwrap();
                let (cut, lost) = (self.processes[at].cut, self.random.chance(self.lost));
                let takes = self.takes();
                self.after(limit, at, Event::GivesUp(number));
                if !cut && !lost {
                    self.after(takes, at, Event::Arrives(number, request));
                }
            }
        }
    }
}

//! The API server of the world, and its watches.

use std::time::Duration;

use super::world::{Event, Seen, World, identity};
use crate::leader::{Answer, Record, Request};

impl World {
    /// The API server: it compares versions, and that is all that it does.
    pub fn arrives(&mut self, at: usize, number: u64, request: &Request<()>) {
        let current = self.lease.as_ref().map(|lease| lease.version.clone());
        let matches = match request {
            Request::Read => true,
            Request::Create => current.is_none(),
            Request::Hold(over) | Request::Release(over) => current == Some(over.version.clone()),
        };
        let answer = if *request == Request::Read {
            Answer::Read(self.lease.clone())
        } else if matches {
            let release = matches!(request, Request::Release(_));
            self.change(|_| {
                Some(Record {
                    version: "".into(),
                    holder: (!release).then(|| identity(at)),
                    duration: Some(Duration::from_secs(15)),
                    body: (),
                })
            });
            Answer::Stored(self.lease.clone().unwrap())
        } else {
            Answer::Refused
        };
        let takes = self.takes();
        if !self.random.chance(self.lost) {
            self.after(takes, at, Event::Reply(number, answer));
        }
    }

    /// The Lease takes a new form, and every watch will show it, in order.
    pub fn change(&mut self, form: impl FnOnce(Seen) -> Seen) {
        self.version += 1;
        self.lease = form(self.lease.take());
        if let Some(lease) = &mut self.lease {
            lease.version = self.version.to_string().into();
        }
        for at in 0..self.processes.len() {
            self.show(at);
        }
    }

    fn show(&mut self, at: usize) {
        let takes = self.takes();
        let process = &mut self.processes[at];
        process.watched_until = process.watched_until.max(self.now + takes);
        let (time, watch) = (process.watched_until, process.watch);
        let seen = self.lease.clone();
        if !self.processes[at].cut {
            self.at(time, at, Event::Watched(watch, seen));
        }
    }

    pub fn watch_again(&mut self, at: usize) {
        self.processes[at].watch += 1;
        self.processes[at].watched_until = self.now;
        self.show(at);
    }
}

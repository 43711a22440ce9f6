//! What is seen of the Lease.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::watcher::{self, Event};
use tracing::{debug, info, warn};

use super::{Clock, Election, lease};
use crate::health::Part;

/// Reads the events of the watch.
pub(super) struct Seeing {
    health: Part,
    /// Whether the list at the start of a watch had the object.
    listed: bool,
    /// The last error, which is told once.
    trouble: Option<Arc<str>>,
}

impl Seeing {
    pub(super) fn new(health: Part) -> Self {
        Self { health, listed: false, trouble: None }
    }

    /// Takes in an event.
    pub(super) fn take(
        &mut self,
        event: watcher::Result<Event<Lease>>,
        election: &mut Election<Lease>,
        clock: &Clock,
    ) {
        let event = match event {
            Ok(event) => event,
            Err(error) => return self.trouble(&error),
        };
        // A watch that was cut goes on where it was, with no list: any event says that it does.
        if self.trouble.take().is_some() {
            info!("the lease can be watched again");
            self.health.ready();
        }
        match event {
            Event::Init => self.listed = false,
            Event::InitApply(lease) => {
                self.listed = true;
                election.seen(Some(lease::record(lease)), clock.now());
            }
            Event::InitDone => {
                if !self.listed {
                    election.seen(None, clock.now());
                }
            }
            Event::Apply(lease) => election.seen(Some(lease::record(lease)), clock.now()),
            Event::Delete(lease) => {
                warn!("the lease was deleted");
                let version = lease.metadata.resource_version.unwrap_or_default();
                election.seen_deleted(&version, clock.now());
            }
        }
    }

    fn trouble(&mut self, error: &watcher::Error) {
        let words: Arc<str> = error.to_string().into();
        let said = format!("the lease cannot be watched, so this process cannot lead: {error}");
        if self.trouble.as_ref() == Some(&words) {
            debug!("{said}");
        } else {
            warn!("{said}");
            self.trouble = Some(words);
        }
        // Each time, since a leader whose writes go well says meanwhile that all is.
        self.health.degraded(said);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::health::{Health, State};
    use crate::leader::Settings;

    #[test]
    fn a_watch_that_goes_on_where_it_was_cut_is_well_again() {
        let health = Health::default().part("leader");
        let mut seeing = Seeing::new(health.clone());
        let (mut election, clock) = (Election::new(Settings::default(), "me"), Clock::boot());
        let mut take = |event| seeing.take(event, &mut election, &clock);
        for _ in 0..2 {
            take(Err(watcher::Error::NoResourceVersion));
            assert!(matches!(health.state(), State::Degraded(_)));
            // A write that went well says so in between, and is not the last word.
            health.ready();
        }
        take(Err(watcher::Error::NoResourceVersion));
        assert!(matches!(health.state(), State::Degraded(_)));
        take(Ok(Event::Apply(Lease::default())));
        assert_eq!(health.state(), State::Ready);
    }
}

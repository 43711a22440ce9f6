//! A client of which every answer is seen: a watch that goes on after trouble says nothing by
//! itself until an object changes, so that its answer alone tells that the trouble is over.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Request;
use kube::Client;
use kube::client::Body;

use super::reporter::Reporter;
use crate::index::ObjectKind;

/// A client for the requests of one kind. It reports answers, and does not begin watches without a
/// pause where they end as soon as they are begun.
pub(super) fn observed(client: &Client, kind: ObjectKind, reporter: &Reporter) -> Client {
    let namespace = client.default_namespace().to_owned();
    let (client, reporter) = (client.clone(), reporter.clone());
    let pace = Arc::new(Mutex::new(Pace::default()));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, reporter, pace) = (client.clone(), reporter.clone(), pace.clone());
        async move {
            let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            if watch {
                let pause =
                    pace.lock().unwrap_or_else(PoisonError::into_inner).begin(Instant::now());
                tokio::time::sleep(pause).await;
            }
            let response = client.send(request).await?;
            if response.status().is_success() {
                reporter.answered(kind);
                if watch {
                    reporter.metrics().watched(kind);
                }
            }
            Ok::<_, kube::Error>(response)
        }
    });
    Client::new(service, namespace)
}

/// How often a watch may be begun.
#[derive(Debug, Default)]
struct Pace {
    /// When the last one was let go.
    last: Option<Instant>,
    /// How many in a row were begun soon after the one before.
    hasty: u32,
}

/// Watches that are further apart than this never wait.
const APART: Duration = Duration::from_millis(900);

/// How many in a row may follow at once.
const AT_ONCE: u32 = 4;

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(2);

impl Pace {
    /// How long a watch that is to be begun now waits.
    fn begin(&mut self, now: Instant) -> Duration {
        let hasty = self.last.is_some_and(|last| now < last + APART);
        self.hasty = if hasty { self.hasty.saturating_add(1) } else { 0 };
        let over = self.hasty.saturating_sub(AT_ONCE);
        let pause = match over {
            0 => Duration::ZERO,
            over => (Duration::from_millis(50) * 2u32.saturating_pow(over.min(8))).min(LONGEST),
        };
        self.last = Some(now + pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_that_last_never_wait() {
        let mut pace = Pace::default();
        let start = Instant::now();
        for second in 0..100 {
            assert_eq!(pace.begin(start + Duration::from_secs(second)), Duration::ZERO);
        }
    }

    #[test]
    fn watches_that_end_at_once_are_begun_ever_slower() {
        let mut pace = Pace::default();
        let start = Instant::now();
        let mut now = start;
        let mut begun = 0;
        while now < start + Duration::from_mins(1) {
            now += pace.begin(now);
            begun += 1;
        }
        assert!((30..45).contains(&begun), "{begun} in a minute");
        // One that lasted ends the haste.
        assert_eq!(pace.begin(now + APART), Duration::ZERO);
        assert_eq!(pace.begin(now + APART), Duration::ZERO);
    }
}

//! The watch of one kind, for ever: a list, then changes, and again where the thread is lost.

use std::time::{Duration, Instant};

use backon::BackoffBuilder;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};

use super::kinds::{Followed, selector};
use super::seen::{Read, Seen};
use crate::api;
use crate::index::ObjectKind;

/// What comes of a watch.
pub(super) type Told = (ObjectKind, watcher::Result<Event<Read>>);

/// How long the API server lets a watch last, in seconds. One that says nothing for 5 s longer is
/// given up, so this is how long a connection to nowhere can go unnoticed.
pub(super) const LASTS: u32 = 50;
/// The longest pause before it is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A failure that comes later than this after the one before is the first of a row.
const OF_A_ROW: Duration = Duration::from_secs(10);

/// Where objects come from at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    /// By the watch itself.
    Streamed,
    /// Page by page, from a server that does not stream them.
    Paged,
}

struct Watch<K: 'static> {
    api: Api<Seen<K>>,
    lists: Lists,
    events: BoxStream<'static, watcher::Result<Event<Seen<K>>>>,
    /// Whether a list has begun that is not complete.
    listing: bool,
    backoff: backon::ExponentialBackoff,
    failed: Option<Instant>,
    /// Before it goes on.
    pause: Option<Duration>,
}

/// Follows a kind in all namespaces. After an error it pauses, ever longer up to some seconds, and
/// goes on by itself.
pub(super) fn watch<K: Followed>(client: Client) -> BoxStream<'static, Told> {
    let api = Api::<Seen<K>>::all(client);
    let lists = Lists::Streamed;
    let events = events(&api, lists);
    let (backoff, failed, pause) = (backoff(), None, None);
    let watch = Watch { api, lists, events, listing: false, backoff, failed, pause };
    stream::unfold(watch, async |mut watch| Some((watch.next().await?, watch))).boxed()
}

impl<K: Followed> Watch<K> {
    async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            let told = self.events.next().await?;
            match &told {
                Ok(Event::Init) => self.listing = true,
                Ok(Event::InitDone) => self.listing = false,
                _ => {}
            }
            if let Err(error) = &told {
                if self.lists == Lists::Streamed && streams_no_lists(error) {
                    tracing::debug!(kind = K::KIND.as_str(), "the server streams no lists");
                    self.lists = Lists::Paged;
                    self.events = events(&self.api, self.lists);
                    continue;
                }
                if self.listing || lost(error) {
                    // What this watch would still say lacks something: it begins anew.
                    self.events = events(&self.api, self.lists);
                    self.listing = false;
                }
                self.pause = Some(self.back_off());
            }
            return Some((K::KIND, told.map(without_kind)));
        }
    }

    fn back_off(&mut self) -> Duration {
        let now = Instant::now();
        if self.failed.replace(now).is_none_or(|failed| now > failed + OF_A_ROW) {
            self.backoff = backoff();
        }
        self.backoff.next().unwrap_or(OF_A_ROW)
    }
}

fn backoff() -> backon::ExponentialBackoff {
    api::backoff(LONGEST_PAUSE).build()
}

fn events<K: Followed>(
    api: &Api<Seen<K>>,
    lists: Lists,
) -> BoxStream<'static, watcher::Result<Event<Seen<K>>>> {
    let mut config = watcher::Config::default().timeout(LASTS);
    if let Some(selector) = selector(K::KIND) {
        config = config.labels(selector);
    }
    if lists == Lists::Streamed {
        config = config.streaming_lists();
    }
    watcher(api.clone(), config).boxed()
}

/// Whether the server refuses to begin a watch with a list, as one does that is older than
/// Kubernetes 1.27 or has the feature off.
fn streams_no_lists(error: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = error else { return false };
    matches!(status.code, 400 | 422)
}

/// Whether an event was lost, since it is no JSON. (An object that is not as we know it is none such:
/// it is read as what it is.)
fn lost(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchFailed(kube::Error::SerdeError(_)))
}

fn without_kind<K>(event: Event<Seen<K>>) -> Event<Read> {
    match event {
        Event::Apply(seen) => Event::Apply(seen.read),
        Event::Delete(seen) => Event::Delete(seen.read),
        Event::Init => Event::Init,
        Event::InitApply(seen) => Event::InitApply(seen.read),
        Event::InitDone => Event::InitDone,
    }
}

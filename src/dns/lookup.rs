//! Look-ups upstream: each question once at a time, whoever waits for it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hickory_proto::op::ResponseCode;
use tokio::sync::watch;
use tokio::time::timeout;

use super::answer::Outcome;
use super::cache::{Cache, Hit, Key};
use super::metrics::Metrics;
use super::reply::{Age, Reply};
use super::seats::Seats;
use super::upstream::Upstreams;

/// How long a client waits for a fresh answer where there is an old one. The second try upstream
/// starts after 250 ms, and clients give up after a second.
const STALE_AFTER: Duration = Duration::from_millis(400);
/// The same where no upstream answered lately. One that is well answers within it; it may be that
/// only the names that were asked for have nobody who answers.
const STALE_AFTER_AWAY: Duration = Duration::from_millis(100);
/// How many questions may be under way upstream at once, one client's being an eighth of them.
const FLIGHTS: usize = 4096;

type Flight = watch::Receiver<Option<Arc<Reply>>>;

/// The cache, the upstreams, and the questions that are under way.
#[derive(Debug)]
pub struct Lookups {
    cache: Cache,
    upstreams: Upstreams,
    flights: Mutex<HashMap<Key, Flight>>,
    seats: Arc<Seats>,
    metrics: Arc<Metrics>,
}

/// What a look-up came to.
#[derive(Debug, Clone)]
pub struct Looked {
    /// The reply.
    pub reply: Arc<Reply>,
    /// How old it is.
    pub age: Age,
    /// How it came about.
    pub outcome: Outcome,
}

impl Lookups {
    /// Nothing is known yet.
    pub fn new(upstreams: Upstreams, metrics: Arc<Metrics>) -> Self {
        let (cache, flights, seats) = (Cache::default(), Mutex::default(), Seats::new(FLIGHTS));
        Self { cache, upstreams, flights, seats, metrics }
    }

    /// What there is without waiting.
    pub fn at_hand(&self, key: &Key) -> Option<Looked> {
        match self.cache.get(key, Instant::now()) {
            Hit::Answer(reply, age) => {
                let outcome = match age {
                    _ if !reply.is_answer() => Outcome::Failed,
                    Age::Seconds(_) => Outcome::Cached,
                    Age::Stale => Outcome::Stale,
                };
                Some(Looked { reply, age, outcome })
            }
            Hit::Stale(_) | Hit::Nothing => None,
        }
    }

    /// Asks upstream, or waits with others who asked the same. A question that is under way goes
    /// on when everybody has given up, and its answer is kept for the next one.
    pub async fn ask(self: &Arc<Self>, key: &Key, client: IpAddr) -> Looked {
        let stale = match self.cache.get(key, Instant::now()) {
            Hit::Stale(reply) => Some(reply),
            _ => None,
        };
        let Some(flight) = self.flight(key, client) else {
            return stale.map_or_else(|| failed(Outcome::Overload), old);
        };
        let Some(stale) = stale else {
            return landed(flight).await.map_or_else(|| failed(Outcome::Failed), fresh);
        };
        let away = self.upstreams.all_away();
        let patience = if away { STALE_AFTER_AWAY } else { STALE_AFTER };
        match timeout(patience, landed(flight)).await {
            Ok(Some(reply)) if reply.is_answer() => fresh(reply),
            _ => old(stale),
        }
    }

    /// The question that is under way for this key, started if need be; `None` where there are
    /// too many, in all or of those that this client started.
    fn flight(self: &Arc<Self>, key: &Key, client: IpAddr) -> Option<Flight> {
        let mut flights = self.flights();
        // One whose task is gone without an answer is no flight any more.
        if let Some(flight) = flights.get(key).filter(|flight| flight.has_changed().is_ok()) {
            return Some(flight.clone());
        }
        let seat = self.seats.take(client)?;
        let (landing, flight) = watch::channel(None);
        flights.insert(key.clone(), flight.clone());
        self.metrics.under_way(flights.len());
        drop(flights);
        let (lookups, key) = (self.clone(), key.clone());
        tokio::spawn(async move {
            let reply = Arc::new(lookups.upstreams.ask(&key).await);
            lookups.cache.put(&key, &reply, Instant::now());
            lookups.metrics.kept(lookups.cache.len());
            let mut flights = lookups.flights();
            flights.remove(&key);
            drop(seat);
            lookups.metrics.under_way(flights.len());
            drop(flights);
            // Everybody may have gone.
            let _ = landing.send(Some(reply));
        });
        Some(flight)
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<Key, Flight>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reply of a question that is under way.
async fn landed(mut flight: Flight) -> Option<Arc<Reply>> {
    let landed = flight.wait_for(Option::is_some).await;
    landed.ok().and_then(|reply| reply.clone())
}

fn fresh(reply: Arc<Reply>) -> Looked {
    let outcome = if reply.is_answer() { Outcome::Forwarded } else { Outcome::Failed };
    Looked { reply, age: Age::Seconds(0), outcome }
}

fn old(reply: Arc<Reply>) -> Looked {
    Looked { reply, age: Age::Stale, outcome: Outcome::Stale }
}

fn failed(outcome: Outcome) -> Looked {
    let reply = Arc::new(Reply::of_code(ResponseCode::ServFail));
    Looked { reply, age: Age::Seconds(0), outcome }
}

#[cfg(test)]
mod tests;

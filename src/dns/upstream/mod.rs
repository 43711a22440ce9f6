//! The servers that know all other names: tried in turn until one answers.

pub mod choice;
mod exchange;
mod pool;
pub mod resolv_conf;
mod tcp;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt};
use hickory_proto::op::ResponseCode;
use tokio::sync::Semaphore;
use tokio::time::{sleep_until, timeout};
use tracing::{debug, warn};

use super::cache::Key;
use super::metrics::Metrics;
use super::reply::Reply;
use choice::Standing;
use exchange::ExchangeError;
use pool::{Pool, Strange};

/// When the next try starts, if no answer came, after the first one. musl gives a name one second
/// in all and Go one second a try, so the second is early; the last ones are for the cache.
const TRIES: [Duration; 4] = [
    Duration::from_millis(250),
    Duration::from_millis(750),
    Duration::from_millis(1500),
    Duration::from_millis(2500),
];
/// How long one try may take.
const ONE_TRY: Duration = Duration::from_secs(2);
/// How long a lookup may take in all.
const PATIENCE: Duration = Duration::from_secs(5);
/// A try that is older than this when another brings the answer counts as failed.
const SLOW: Duration = Duration::from_millis(200);
/// How many sockets there may be for second tries.
const FRESH_SOCKETS: usize = 256;

/// The upstreams.
#[derive(Debug)]
pub struct Upstreams {
    all: Vec<One>,
    standings: Mutex<Vec<Standing>>,
    fresh: Semaphore,
    metrics: Arc<Metrics>,
}

#[derive(Debug)]
struct One {
    address: SocketAddr,
    name: String,
    pool: Pool,
}

/// What came of one try.
struct Tried {
    index: usize,
    result: Result<Reply, ExchangeError>,
}

impl Upstreams {
    /// These servers; those first that are to be preferred while nothing is known of them.
    pub fn new(addresses: &[SocketAddr], metrics: Arc<Metrics>) -> Self {
        let one = |address: &SocketAddr| {
            let counted = metrics.clone();
            let strange = Strange(Arc::new(move || counted.strange_response()));
            One { address: *address, name: address.to_string(), pool: Pool::new(*address, strange) }
        };
        Self {
            all: addresses.iter().map(one).collect(),
            standings: Mutex::new(vec![Standing::default(); addresses.len()]),
            fresh: Semaphore::new(FRESH_SOCKETS),
            metrics,
        }
    }

    /// Whether none of them answered lately.
    pub fn all_away(&self) -> bool {
        choice::all_away(&self.standings())
    }

    /// Asks until one answers, all refuse, or patience ends; the reply then says SERVFAIL.
    pub async fn ask(&self, key: &Key) -> Reply {
        let start = Instant::now();
        let chosen = choice::choose(&self.standings(), start);
        let mut turns = chosen.order.iter().copied().cycle();
        let mut starts: VecDeque<Instant> = TRIES.iter().map(|after| start + *after).collect();
        let mut tries = FuturesUnordered::new();
        let mut under_way: Vec<(usize, Instant)> = Vec::new();
        let mut refused: BTreeSet<usize> = BTreeSet::new();
        let mut worst = Reply::of_code(ResponseCode::ServFail);
        // The first try shares a socket with others, as a probe does.
        for index in turns.next().into_iter().chain(chosen.probe) {
            under_way.push((index, start));
            tries.push(self.one_try(index, key, false));
        }
        loop {
            let next = starts.front().copied().unwrap_or(start + PATIENCE);
            tokio::select! {
                Some(Tried { index, result }) = tries.next() => {
                    if let Some(at) = under_way.iter().position(|(one, _)| *one == index) {
                        under_way.remove(at);
                    }
                    match result {
                        Ok(reply) if reply.is_answer() => {
                            self.left_waiting(&under_way);
                            return reply;
                        }
                        // It is there and has no answer; perhaps another one has.
                        Ok(reply) => {
                            worst = reply;
                            refused.insert(index);
                            if refused.len() == self.all.len() {
                                return worst;
                            }
                        }
                        Err(error) => debug!(upstream = self.name(index), %error, "no answer"),
                    }
                    // Nothing to wait for: the next one's turn comes now, once for each upstream.
                    if under_way.is_empty() && TRIES.len() - starts.len() + 1 < self.all.len()
                        && let Some(next) = starts.front_mut()
                    {
                        *next = Instant::now();
                    }
                    if under_way.is_empty() && starts.is_empty() {
                        return worst;
                    }
                }
                () = sleep_until(next.into()) => {
                    if starts.pop_front().is_none() {
                        self.left_waiting(&under_way);
                        return worst;
                    }
                    if let Some(index) = turns.next() {
                        under_way.push((index, Instant::now()));
                        tries.push(self.one_try(index, key, true));
                    }
                }
            }
        }
    }

    /// One try, and what it says of the upstream.
    async fn one_try(&self, index: usize, key: &Key, fresh: bool) -> Tried {
        let Some(one) = self.all.get(index) else {
            return Tried { index, result: Err(ExchangeError::Closed) };
        };
        let begun = Instant::now();
        self.stand(index, |standing| standing.asks(begun));
        let result = timeout(ONE_TRY, self.exchange(one, key, fresh)).await;
        let result =
            result.unwrap_or(Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()));
        match &result {
            Ok(_) => {
                let took = begun.elapsed();
                self.metrics.upstream_answered(&one.name, took);
                self.stand(index, |standing| standing.answered(took));
            }
            Err(_) => self.failed(index),
        }
        Tried { index, result }
    }

    /// Over UDP, then by TCP where it does not fit, and without EDNS where that is not understood.
    async fn exchange(&self, one: &One, key: &Key, fresh: bool) -> Result<Reply, ExchangeError> {
        let permit = if fresh { self.fresh.try_acquire().ok() } else { None };
        let mut edns = true;
        loop {
            let message = match permit {
                Some(_) => {
                    let strange = || self.metrics.strange_response();
                    exchange::ask_afresh(one.address, key, edns, strange).await?
                }
                None => one.pool.ask(key, edns).await?,
            };
            let code = message.metadata.response_code;
            if edns
                && matches!(
                    code,
                    ResponseCode::FormErr | ResponseCode::NotImp | ResponseCode::BADVERS
                )
            {
                edns = false;
                continue;
            }
            if message.metadata.truncation {
                return match tcp::ask(one.address, key, edns).await {
                    Ok(whole) => Ok(Reply::new(whole)),
                    Err(error) => {
                        debug!(upstream = one.name, %error, "no answer over TCP");
                        Ok(Reply::new(message))
                    }
                };
            }
            return Ok(Reply::new(message));
        }
    }

    /// Tries that another one overtook although they had begun long before: their upstream did
    /// not answer in time.
    fn left_waiting(&self, under_way: &[(usize, Instant)]) {
        for (index, _) in under_way.iter().filter(|(_, begun)| begun.elapsed() >= SLOW) {
            self.failed(*index);
        }
    }

    fn failed(&self, index: usize) {
        self.metrics.upstream_failed(self.name(index));
        let mut left = false;
        self.stand(index, |standing| {
            let before = standing.is_away();
            standing.failed();
            left = standing.is_away() && !before;
        });
        if left {
            warn!(
                upstream = self.name(index),
                "does not answer; others are asked first until it does"
            );
        }
    }

    fn name(&self, index: usize) -> &str {
        self.all.get(index).map_or("", |one| &one.name)
    }

    fn stand(&self, index: usize, change: impl FnOnce(&mut Standing)) {
        if let Some(standing) = self.standings().get_mut(index) {
            change(standing);
        }
    }

    fn standings(&self) -> MutexGuard<'_, Vec<Standing>> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

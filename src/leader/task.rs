//! The election against an API server.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, OptionFuture};
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, ExponentialBackoff};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::api;
use crate::health::{Part, State};

use super::permit::Seat;
use super::seeing::Seeing;
use super::{Answer, Clock, Election, Leadership, Record, Request, Settings, Step, lease};

/// How long the hand-over may take in all, the writes under way included: the process is told to
/// stop, and must not hang at an API server that is gone.
const HAND_OVER: Duration = Duration::from_millis(900);
/// How long it waits for the writes under way.
const UNDER_WAY: Duration = Duration::from_millis(300);

/// The longest pause before the Lease is watched again. Shorter than the usual 30 s: whoever does not
/// watch cannot take over.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A name that no other process has: that of the pod or host, and a random number. A process that
/// is started anew is another one, since the old one may still be writing.
pub fn identity() -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let mut random = RandomState::new().build_hasher();
    random.write_u32(std::process::id());
    format!("{host}_{:016x}", random.finish())
}

/// What an election needs.
#[derive(Clone)]
pub struct Elector {
    /// The client. Its requests are given up after a third of the renew deadline.
    pub client: Client,
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Who holds it, as [`identity`] makes it.
    pub identity: String,
    /// The durations.
    pub settings: Settings,
    /// Says what stands in the way. Nothing waits for it: every replica serves.
    pub health: Part,
    /// Who writes it, as `managedFields` says it.
    pub manager: &'static str,
}

impl Elector {
    /// The handle on the leadership, and what begins the election, which goes on until `stop`; then
    /// it hands over, in less than a second, and is done. Where it broke it can be begun anew; no two
    /// must be at work at a time.
    pub fn elect(
        self,
        stop: CancellationToken,
    ) -> (Leadership, impl FnMut() -> BoxFuture<'static, ()> + Send + 'static) {
        let clock = Clock::boot();
        let (seat, leadership) = Seat::new(clock.clone());
        let (seat, mut begun) = (Arc::new(seat), 0_u32);
        let begin = move || {
            let mut elector = self.clone();
            if begun > 0 {
                // What broke may have a request under way: it is another candidate.
                elector.identity = format!("{}-{begun}", self.identity);
            }
            begun += 1;
            elector.run(seat.clone(), clock.clone(), stop.clone()).boxed()
        };
        (leadership, begin)
    }

    async fn run(self, seat: Arc<Seat>, clock: Clock, stop: CancellationToken) {
        let _vacant = Vacant(&seat);
        let api: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut election = Election::new(self.settings, self.identity.as_str());
        let hand_over = async {
            stop.cancelled().await;
            tokio::time::sleep(HAND_OVER).await;
        };
        let round = self.rounds(&api, &mut election, &seat, &clock, &stop);
        let handed_over = tokio::select! { () = round => true, () = hand_over => false };
        if !handed_over {
            warn!("the lease {}/{} could not be handed over in time", self.namespace, self.name);
        }
    }

    async fn rounds(
        &self,
        api: &Api<Lease>,
        election: &mut Election<Lease>,
        seat: &Seat,
        clock: &Clock,
        stop: &CancellationToken,
    ) {
        let mut watch = self.watch(api.clone());
        self.health.ready();
        let mut seeing = Seeing::new(self.health.clone());
        let mut stopping = false;
        let mut under_way = None;
        loop {
            let step = election.step(clock.now());
            if seat.say(election.term()) {
                self.tell(election);
            }
            let until = match step {
                Step::Done => return,
                Step::Wait(until) => until,
                Step::Send(request, limit) => {
                    under_way = Some(Box::pin(self.send(api.clone(), request, limit)));
                    None
                }
            };
            let pause = until.map(|until| tokio::time::sleep(until.since(clock.now())));
            tokio::select! {
                biased;
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    election.stop();
                    seat.say(None);
                    if !seat.idle(UNDER_WAY).await {
                        warn!("a write is still under way at the hand-over");
                    }
                }
                Some(answer) = OptionFuture::from(under_way.as_mut()) => {
                    under_way = None;
                    election.answered(answer, clock.now());
                }
                Some(event) = watch.next() => seeing.take(event, election, clock),
                Some(()) = OptionFuture::from(pause) => {}
            }
        }
    }

    /// Watches this one object; it reconnects by itself for ever.
    fn watch(
        &self,
        leases: Api<Lease>,
    ) -> Pin<Box<dyn Stream<Item = watcher::Result<Event<Lease>>> + Send>> {
        let backoff = ExponentialBackoff::from(api::backoff(LONGEST_PAUSE));
        watcher::watcher(leases, api::only(&self.name)).backoff(backoff).boxed()
    }

    async fn send(
        &self,
        api: Api<Lease>,
        request: Request<Lease>,
        limit: Duration,
    ) -> Answer<Lease> {
        let sent = tokio::time::timeout(limit, self.request(&api, request)).await;
        let error = match sent {
            Ok(Ok(answer)) => {
                self.health.ready();
                return answer;
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                return Answer::Refused;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {limit:?}"),
        };
        let said = format!("the lease {}/{} cannot be held: {error}", self.namespace, self.name);
        // Said once, and not with every attempt.
        if self.health.state() == State::Degraded(said.clone()) {
            debug!("{said}");
        } else {
            warn!("{said}");
            self.health.degraded(said);
        }
        Answer::Failed
    }

    async fn request(
        &self,
        api: &Api<Lease>,
        request: Request<Lease>,
    ) -> kube::Result<Answer<Lease>> {
        let params =
            PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        let (name, me, now) = (self.name.as_str(), self.identity.as_str(), Timestamp::now());
        let stored = match request {
            Request::Read => {
                let read = api.get_opt(name).await?;
                return Ok(Answer::Read(read.map(lease::record)));
            }
            Request::Create => {
                api.create(&params, &lease::new(name, me, &self.settings, now)).await?
            }
            Request::Hold(Record { body, .. }) => {
                let lease = lease::held(body, me, &self.settings, now);
                api.replace(name, &params, &lease).await?
            }
            Request::Release(Record { body, .. }) => {
                api.replace(name, &params, &lease::released(body, now)).await?
            }
        };
        Ok(Answer::Stored(lease::record(stored)))
    }

    fn tell(&self, election: &Election<Lease>) {
        let lease = format!("{}/{}", self.namespace, self.name);
        if election.leads_until().is_some() {
            info!(lease, identity = self.identity, "this process leads");
        } else {
            let holder = election.holder().map_or("nobody", |holder| &**holder);
            info!(lease, holder, "this process does not lead any more");
        }
    }
}

/// Leaves the seat empty when an election is over or broke; it stays for the next one.
struct Vacant<'a>(&'a Seat);

impl Drop for Vacant<'_> {
    fn drop(&mut self) {
        self.0.say(None);
    }
}

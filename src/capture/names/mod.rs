//! The mesh-DNS snapshot file: written when the records change, and stamped again by a heartbeat
//! that only a working reconciler can give.
//!
//! A thread of its own writes, since a disk may hang. Every `heartbeat` it asks the reconciler's
//! thread, which answers with the records and the time of its answer: that time is the stamp. A
//! reconciler that hangs does not answer, and the stamp stays what it was, whatever else of the
//! process still lives. A failed write is tried again with the old stamp.

mod file;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use crate::model::{MeshService, Projection, Records, ServiceKey};
pub use file::{SnapshotFile, StoreError};

/// The first pause after a failed write; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause: a disk that has room again is used soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The reconciler's end: it hands over records and answers heartbeats. Dropped, the writing ends.
#[derive(Debug)]
pub struct Names {
    desk: Arc<Desk>,
    beats: mpsc::Receiver<()>,
    services: Option<Services>,
}

/// The services of a projection, of which the writer makes the records: it has time for them all.
type Services = OrdMap<ServiceKey, Arc<MeshService>>;

/// What lies between the two threads.
#[derive(Debug, Default)]
struct Desk {
    tray: Mutex<Tray>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Tray {
    /// The newest services, with the time at which they were vouched for; older ones are not
    /// written any more.
    vouched: Option<(Services, SystemTime)>,
    closed: bool,
}

/// What the writing counts. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    writes: Counter,
    failures: Counter,
    generation: Gauge,
    written_at: Gauge,
}

impl Metrics {
    /// Adds the families to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("mesh_dns_file");
        all.register("writes", "Times that the snapshot file was written", self.writes.clone());
        all.register(
            "failures",
            "Times that the snapshot file could not be written",
            self.failures.clone(),
        );
        all.register("generation", "Generation of the snapshot file", self.generation.clone());
        all.register("written_at", "Its stamp, in Unix seconds", self.written_at.clone());
    }
}

impl Names {
    /// Starts the thread that writes the file at this path.
    ///
    /// # Errors
    /// Where the system gives no thread. Whatever is wrong with the path is told later, again and
    /// again, and stops nothing.
    pub fn start(path: &Path, heartbeat: Duration, metrics: Metrics) -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        // One beat is enough: one that was not answered need not be asked twice.
        let (beat, beats) = mpsc::channel(1);
        let (taken, file) = (desk.clone(), SnapshotFile::new(path));
        let thread = std::thread::Builder::new().name("mesh-dns-file".into());
        thread.spawn(move || write(&taken, file, heartbeat, &beat, &metrics))?;
        Ok(Self { desk, beats, services: None })
    }

    /// Waits until the writer asks whether the reconciler lives.
    pub async fn beat(&mut self) {
        if self.beats.recv().await.is_none() {
            // The writer is gone, which it is not while we are here; it never asks again.
            std::future::pending::<()>().await;
        }
    }

    /// Hands over the services of a projection, if any of their records is another than before.
    pub fn projected(&mut self, projection: &Projection) {
        let before = self.services.replace(projection.services.clone());
        if before.is_none_or(|before| named_otherwise(&before, &projection.services)) {
            self.vouch();
        }
    }

    /// Says that the records are still right at this moment. Before a first projection there are
    /// none.
    pub fn vouch(&self) {
        if let Some(services) = &self.services {
            self.desk.tray().vouched = Some((services.clone(), SystemTime::now()));
            self.desk.bell.notify_one();
        }
    }
}

/// Whether any service has other records than before.
fn named_otherwise(before: &Services, now: &Services) -> bool {
    let of = |service: Option<&Arc<MeshService>>| Records::of(service.into_iter().map(Arc::as_ref));
    before.diff(now).any(|item| match item {
        DiffItem::Add(_, new) => of(None) != of(Some(new)),
        DiffItem::Update { old, new } => of(Some(old.1)) != of(Some(new.1)),
        DiffItem::Remove(_, old) => of(Some(old)) != of(None),
    })
}

impl Drop for Names {
    fn drop(&mut self) {
        self.desk.tray().closed = true;
        self.desk.bell.notify_one();
    }
}

impl Desk {
    fn tray(&self) -> MutexGuard<'_, Tray> {
        self.tray.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes until the other end is gone.
fn write(
    desk: &Desk,
    mut file: SnapshotFile,
    heartbeat: Duration,
    beat: &mpsc::Sender<()>,
    metrics: &Metrics,
) {
    let mut next_beat = Instant::now() + heartbeat;
    // What could not be written, and when it is tried again.
    let mut owed: Option<(Services, SystemTime)> = None;
    let mut again: Option<Instant> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let due = again.map_or(next_beat, |again| again.min(next_beat));
        let mut tray = desk.tray();
        // After a failure, even newer records wait for their turn.
        while !tray.closed && (tray.vouched.is_none() || again.is_some()) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = desk.bell.wait_timeout(tray, left);
            tray = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (newest, closed) = (tray.vouched.take(), tray.closed);
        drop(tray);
        owed = newest.or(owed);
        let now = Instant::now();
        if now >= next_beat {
            // Full: the last one was not answered yet.
            let _ = beat.try_send(());
            next_beat = now + heartbeat;
        }
        if again.is_none_or(|again| now >= again)
            && let Some((services, at)) = owed.take()
        {
            let records = Records::of(services.values().map(Arc::as_ref));
            if store(&mut file, &records, at, metrics, pause) {
                (again, pause) = (None, FIRST_PAUSE);
            } else {
                again = Some(now + pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
                owed = Some((services, at));
            }
        }
        if closed {
            return;
        }
    }
}

/// Writes once; whether that went well.
fn store(
    file: &mut SnapshotFile,
    records: &Records,
    at: SystemTime,
    metrics: &Metrics,
    pause: Duration,
) -> bool {
    let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match file.store(records, at) {
        Ok(content) => {
            let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            if metrics.writes.inc() == 0 {
                info!(generation = content.generation, "the mesh-DNS file is written");
            } else {
                debug!(generation = content.generation, at, "the mesh-DNS file is written");
            }
            metrics.generation.set(gauge(content.generation));
            metrics.written_at.set(gauge(content.written_at));
            true
        }
        Err(error) => {
            metrics.failures.inc();
            warn!("the mesh-DNS file is not written: {error} (next try in {pause:?})");
            false
        }
    }
}

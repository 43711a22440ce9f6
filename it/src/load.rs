//! Steady load, to see what a change costs those whom it does not concern.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::client::Http1;
use crate::net::Netns;

/// What one worker does again and again.
#[derive(Debug, Clone)]
pub enum Work {
    /// GET `/` on a kept connection; the answer must be 200 with this body.
    Http {
        /// Where to connect.
        address: SocketAddr,
        /// The Host field.
        host: String,
        /// The body that is expected.
        body: String,
    },
    /// Sends 32 bytes on one long connection to an echo, and reads them back.
    Echo {
        /// Where to connect.
        address: SocketAddr,
    },
}

/// How much.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The pause of a worker between two requests.
    pub pause: Duration,
    /// An answer later than this is a failure.
    pub patience: Duration,
    /// The load ends by itself after this.
    pub longest: Duration,
}

impl Default for Pace {
    /// A request every 10 ms a worker, answers within 5 s, for at most 5 minutes.
    fn default() -> Self {
        let (pause, patience) = (Duration::from_millis(10), Duration::from_secs(5));
        Self { pause, patience, longest: Duration::from_mins(5) }
    }
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Requests that were answered as expected.
    pub answered: u64,
    /// Requests that were not, and connections that were closed.
    pub failed: u64,
    /// Connections that were made; each beyond one a worker replaced one that was lost.
    pub connections: u64,
    /// The longest time of an answer.
    pub slowest: Duration,
    /// The first failures of each worker: when (since the start), of what, and why.
    pub failures: Vec<String>,
}

impl Report {
    /// An error unless there was load and nothing of it failed or was closed.
    pub fn flawless(&self, workers: usize) -> Result<()> {
        ensure!(self.answered > 0, "nothing was answered: {self:?}");
        ensure!(self.failed == 0 && self.connections == workers as u64, "{self:#?}");
        Ok(())
    }
}

/// Load that runs. Dropped, it is cut off.
#[derive(Debug)]
pub struct Load {
    ends: Arc<AtomicBool>,
    workers: Vec<AbortOnDropHandle<Report>>,
}

impl Load {
    /// Starts one worker for each of these in this namespace.
    pub fn start(netns: &Netns, work: &[Work], pace: Pace) -> Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let start = Instant::now();
        let workers =
            work.iter().map(|work| netns.spawn(worker(work.clone(), pace, start, ends.clone())));
        let workers = workers.collect::<Result<_>>()?;
        Ok(Self { ends, workers })
    }

    /// Lets every worker finish what it does, and sums up.
    pub async fn stop(self) -> Result<Report> {
        self.ends.store(true, Ordering::Relaxed);
        let mut all = Report::default();
        for worker in self.workers {
            let one = worker.await.context("a worker")?;
            all.answered += one.answered;
            all.failed += one.failed;
            all.connections += one.connections;
            all.slowest = all.slowest.max(one.slowest);
            all.failures.extend(one.failures);
        }
        Ok(all)
    }
}

/// A connection of a worker.
enum Line {
    Http(Http1),
    Echo(TcpStream),
}

async fn worker(work: Work, pace: Pace, start: Instant, ends: Arc<AtomicBool>) -> Report {
    let mut report = Report::default();
    let mut line = None;
    let mut round = 0_u64;
    while !ends.load(Ordering::Relaxed) && start.elapsed() < pace.longest {
        round += 1;
        let begun = Instant::now();
        let once = once(&work, &mut line, round, &mut report.connections);
        let done = timeout(pace.patience, once).await.context("no answer").flatten();
        report.slowest = report.slowest.max(begun.elapsed());
        match done {
            Ok(()) => report.answered += 1,
            Err(error) => {
                line = None;
                report.failed += 1;
                if report.failures.len() < 5 {
                    report.failures.push(format!("{:?}: {work:?}: {error:#}", start.elapsed()));
                }
            }
        }
        sleep(pace.pause).await;
    }
    report
}

async fn once(
    work: &Work,
    line: &mut Option<Line>,
    round: u64,
    connections: &mut u64,
) -> Result<()> {
    let open = if let Some(open) = line {
        open
    } else {
        *connections += 1;
        line.insert(match work {
            Work::Http { address, .. } => Line::Http(Http1::connect(*address).await?),
            Work::Echo { address } => Line::Echo(TcpStream::connect(*address).await?),
        })
    };
    match (open, work) {
        (Line::Http(http), Work::Http { host, body, .. }) => {
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let answer = http.exchange(request.as_bytes()).await?;
            ensure!(answer.status()? == 200 && answer.text() == *body, "{answer:?}");
        }
        (Line::Echo(stream), _) => {
            let sent = format!("{round:031}\n");
            stream.write_all(sent.as_bytes()).await?;
            let mut got = [0; 32];
            stream.read_exact(&mut got).await?;
            ensure!(got == sent.as_bytes(), "{:?}", String::from_utf8_lossy(&got));
        }
        (Line::Http(_), Work::Echo { .. }) => {}
    }
    Ok(())
}

//! Asking until there is an identity.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, interval_at, sleep, sleep_until, timeout};
use tracing::{debug, info};

use super::ask::{Identity, ask};
use super::trouble::Trouble;

/// The pause after an attempt.
const PAUSE: Duration = Duration::from_millis(500);
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(15);
/// How often it is said what is missing.
const PROGRESS: Duration = Duration::from_secs(10);

/// What is waited for.
#[derive(Debug, Clone)]
pub struct Options {
    /// The socket of the Workload API.
    pub socket: PathBuf,
    /// For how long; `None`: for ever.
    pub timeout: Option<Duration>,
}

/// Why there is no identity: what ended the waiting, and what stood in the way until then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no identity after {}s: {told} ({hint})", after.as_secs_f32())]
pub struct GaveUp {
    /// After so long.
    pub after: Duration,
    /// The last real error.
    pub told: String,
    /// What to look at.
    pub hint: &'static str,
}

/// Waits for an identity, until the timeout or until `stop` is done. The error is the last one
/// that an attempt ended with, and not that of the attempt which the end cut off.
///
/// # Errors
/// Where there is none by then.
pub async fn wait(options: &Options, stop: impl Future<Output = ()>) -> Result<Identity, GaveUp> {
    let start = Instant::now();
    let mut last: Option<Trouble> = None;
    let deadline = async {
        match options.timeout {
            Some(limit) => sleep_until(start + limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(deadline, stop);
    let mut progress = interval_at(start + PROGRESS, PROGRESS);
    loop {
        let attempt = async {
            let attempt = timeout(ATTEMPT, ask(&options.socket)).await;
            attempt.unwrap_or(Err(Trouble::Silent(ATTEMPT)))
        };
        tokio::pin!(attempt);
        let outcome = loop {
            tokio::select! {
                // What is there counts, even at the last moment.
                biased;
                outcome = &mut attempt => break outcome,
                () = &mut stop => return Err(gave_up(options, start, last.as_ref())),
                () = &mut deadline => return Err(gave_up(options, start, last.as_ref())),
                _ = progress.tick() => tell(options, start, last.as_ref()),
            }
        };
        match outcome {
            Ok(identity) => return Ok(identity),
            Err(trouble) => {
                debug!(?trouble, "not yet");
                last = Some(trouble);
            }
        }
        let pause = sleep(PAUSE);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => break,
                () = &mut stop => return Err(gave_up(options, start, last.as_ref())),
                () = &mut deadline => return Err(gave_up(options, start, last.as_ref())),
                _ = progress.tick() => tell(options, start, last.as_ref()),
            }
        }
    }
}

/// What stands in the way. Without any error yet, the first attempt still goes on.
fn standing(options: &Options, start: Instant, last: Option<&Trouble>) -> (String, &'static str) {
    let silent = Trouble::Silent(start.elapsed());
    let trouble = last.unwrap_or(&silent);
    (trouble.told(&options.socket), trouble.hint())
}

fn tell(options: &Options, start: Instant, last: Option<&Trouble>) {
    let (told, hint) = standing(options, start, last);
    info!(after = ?Duration::from_secs(start.elapsed().as_secs()), hint, "still waiting: {told}");
}

fn gave_up(options: &Options, start: Instant, last: Option<&Trouble>) -> GaveUp {
    let (told, hint) = standing(options, start, last);
    GaveUp {
        after: Duration::from_millis(
            u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        ),
        told,
        hint,
    }
}

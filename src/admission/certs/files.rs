//! A pair of files, read again when it changes.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::{info, warn};

use super::metrics::Metrics;
use super::slot::Slot;
use crate::health::Part;
use crate::tls::{self, Material as _, News};
pub use crate::tls::{Files, Pair, PairError};

/// How the options of the webhook's pair are called.
const OPTIONS: tls::Options = tls::Options { certificate: "--webhook-cert", key: "--webhook-key" };

/// The pair of files that the webhook was given.
pub fn files(certificate: PathBuf, key: PathBuf) -> Files {
    Files { options: OPTIONS, certificate, key }
}

/// Presents the pair, and whatever takes its place, until it is dropped. While the files are
/// broken, the last good pair stays.
pub async fn follow(files: Files, first: Pair, slot: Arc<Slot>, health: Part, metrics: Metrics) {
    present(&first, &slot, &metrics);
    health.ready();
    let again = files.clone();
    let read = move |wall| again.read(wall);
    tls::follow(&[&files.certificate, &files.key], first, read, |news| match news {
        News::Good { read, left, new } => {
            if new {
                info!(expires_in = left, "a new pair of files is presented");
                metrics.reloaded("taken");
            }
            present(read, &slot, &metrics);
            health.ready();
        }
        News::Broken { error, expired } => {
            warn!("{error}; the last good pair is presented meanwhile");
            metrics.reloaded("broken");
            if expired {
                health.waiting(format!("the last good pair has expired: {error}"));
                metrics.ready(false);
            } else {
                health.degraded(format!("{error}; the last good pair is presented"));
            }
        }
    })
    .await;
}

fn present(pair: &Pair, slot: &Slot, metrics: &Metrics) {
    slot.set(pair.certified());
    metrics.serving(pair.until());
    metrics.ready(true);
}

//! A pair of files, read again when it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::authority::{Unix, unix_now};
use super::metrics::Metrics;
use super::slot::Slot;
use crate::health::Part;

/// How long changes gather: a pair is written as two files.
const GATHER: Duration = Duration::from_millis(100);
/// How often it is looked at although nothing is heard: not every file system tells of changes.
const LOOK: Duration = Duration::from_secs(10);

/// Why a pair cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// The certificate cannot be read.
    #[error("--webhook-cert {path}: {cause}; it must hold the chain of certificates, PEM")]
    Certificate {
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// The key cannot be read.
    #[error("--webhook-key {path}: {cause}; it must hold the private key, PEM")]
    Key {
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// They do not belong together.
    #[error(
        "--webhook-key {key} is not the key of --webhook-cert {certificate}: {cause}; name the \
         two files of one pair"
    )]
    Mismatch {
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
        /// What the TLS library says.
        cause: String,
    },
    /// Its time is over.
    #[error("--webhook-cert {path} has expired, at {until} seconds since 1970: renew it")]
    Expired {
        /// The file.
        path: String,
        /// When.
        until: Unix,
    },
}

/// A pair of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The chain, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

/// A pair that can be presented.
#[derive(Debug, Clone)]
pub struct Usable {
    certified: Arc<CertifiedKey>,
    until: Unix,
}

impl Usable {
    /// What a TLS server presents.
    pub fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.clone()
    }
}

impl Files {
    /// Reads the pair, and sees that it can be presented at this time.
    pub fn read(&self, wall: Unix) -> Result<Usable, PairError> {
        let path = self.certificate.display().to_string();
        let certificate = |cause: &dyn std::fmt::Display| PairError::Certificate {
            path: path.clone(),
            cause: cause.to_string(),
        };
        let text = std::fs::read(&self.certificate).map_err(|error| certificate(&error))?;
        let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| certificate(&error))?;
        let leaf = chain.first().ok_or_else(|| certificate(&"there is no certificate in it"))?;
        let (_, leaf) =
            x509_parser::parse_x509_certificate(leaf).map_err(|error| certificate(&error))?;
        let until = Unix::try_from(leaf.validity().not_after.timestamp()).unwrap_or_default();
        if until <= wall {
            return Err(PairError::Expired { path, until });
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| PairError::Key {
            path: self.key.display().to_string(),
            cause: error.to_string(),
        })?;
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain.clone(), key, &provider);
        let certified = certified.map_err(|error| PairError::Mismatch {
            certificate: path.clone(),
            key: self.key.display().to_string(),
            cause: error.to_string(),
        })?;
        Ok(Usable { certified: Arc::new(certified), until })
    }

    /// Presents the pair, and whatever takes its place, until it is dropped. While the files are
    /// broken, the last good pair stays.
    pub async fn follow(self, first: Usable, slot: Arc<Slot>, health: Part, metrics: Metrics) {
        let heard = Arc::new(Notify::new());
        // Dropped with us; the folders, since a file that is replaced is another one.
        let _watcher = watcher(&[&self.certificate, &self.key], heard.clone());
        let mut last = first;
        present(&last, &slot, &metrics);
        health.ready();
        let mut told = None;
        loop {
            if timeout(LOOK, heard.notified()).await.is_ok() {
                sleep(GATHER).await;
            }
            let (files, wall) = (self.clone(), unix_now());
            let read = tokio::task::spawn_blocking(move || files.read(wall)).await;
            let Ok(read) = read else { continue };
            match read {
                Ok(new) if same(&new, &last) && told.is_none() => {}
                Ok(new) => {
                    if !same(&new, &last) {
                        info!(expires_in = new.until - wall, "a new pair of files is presented");
                        metrics.reloaded("taken");
                    }
                    last = new;
                    present(&last, &slot, &metrics);
                    told = None;
                    health.ready();
                }
                Err(error) => {
                    let expired = last.until <= wall;
                    if told.as_ref() != Some(&(error.clone(), expired)) {
                        warn!("{error}; the last good pair is presented meanwhile");
                        metrics.reloaded("broken");
                    }
                    if expired {
                        health.waiting(format!("the last good pair has expired: {error}"));
                        metrics.ready(false);
                    } else {
                        health.degraded(format!("{error}; the last good pair is presented"));
                    }
                    told = Some((error, expired));
                }
            }
        }
    }
}

fn present(pair: &Usable, slot: &Slot, metrics: &Metrics) {
    slot.set(pair.certified.clone());
    metrics.serving(pair.until);
    metrics.ready(true);
}

/// Whether two pairs are one: a certificate stands for one key.
fn same(a: &Usable, b: &Usable) -> bool {
    a.certified.cert == b.certified.cert
}

/// Hears of changes in the folders of these files. Without it they are looked at now and then.
fn watcher(paths: &[&Path], heard: Arc<Notify>) -> Option<RecommendedWatcher> {
    let hear = move |event: notify::Result<notify::Event>| {
        // That we read them ourselves is no news.
        if !event.is_ok_and(|event| event.kind.is_access()) {
            heard.notify_one();
        }
    };
    let mut watcher = notify::recommended_watcher(hear).ok()?;
    for path in paths {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
            info!(%error, folder = %folder.display(), "it is looked at every {LOOK:?} instead");
        }
    }
    Some(watcher)
}

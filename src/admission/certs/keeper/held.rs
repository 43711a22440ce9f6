//! What one process holds from round to round.

use std::time::Duration;

use tracing::debug;

use super::PAUSES;
use crate::admission::certs::authority::{Unix, unix_now};
use crate::admission::certs::bundle::Configuration;
use crate::admission::certs::memory::Memory;
use crate::admission::certs::plan::{Write, configuration_of};
use crate::admission::certs::serve::Served;
use crate::admission::certs::settings::Settings;
use crate::admission::certs::x509::{self, Leaf};
use crate::api::ApiError;
use crate::leader::{Boot, NotWritten};

/// So many rounds in a row may write without a pause.
const ROW: u32 = 10;

/// What one process holds.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) memory: Memory,
    /// What is presented.
    leaf: Option<Leaf>,
    pub(super) served: Option<Served>,
    /// What stood in the way of the last write.
    pub(super) trouble: Option<String>,
    pub(super) failures: u32,
    /// How many rounds in a row have written.
    pub(super) row: u32,
    /// How far the API server's clock is ahead of the boot clock.
    epoch: Option<Unix>,
}

/// Why something is not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Permit(#[from] NotWritten),
}

impl Held {
    /// From now on, this one is presented.
    pub(super) fn present(&mut self, leaf: Leaf, wall: Unix) {
        let (issuer, until) = (leaf.issuer.clone(), leaf.until);
        self.served = Some(Served { issuer, signed: wall, until });
        self.leaf = Some(leaf);
    }

    /// Whether the chain verifies, by the book, against each bundle as it stands.
    pub(super) fn verify(
        &self,
        configuration: &Configuration,
        wall: Unix,
        settings: &Settings,
    ) -> Result<(), String> {
        let (Some(leaf), Configuration::Found { entries, .. }) = (&self.leaf, configuration) else {
            return Ok(());
        };
        for entry in entries {
            let Some(host) = &entry.host else { continue };
            let chain = &leaf.certified.cert;
            x509::verify(chain, &entry.bundle.authorities, host, wall).map_err(|error| {
                let name = configuration_of(settings);
                let entry = &entry.name;
                format!(
                    "the caBundle of {entry} in {name} does not verify our certificate: {error}"
                )
            })?;
        }
        Ok(())
    }

    /// What time it is: by the API server, who checks our certificate; by ourselves while it has
    /// not said.
    pub(super) fn wall(&mut self, said: Option<Unix>, boot: Boot) -> Unix {
        if let Some(said) = said {
            self.epoch = Some(said.saturating_sub(boot.0.as_secs()));
        }
        self.epoch.map_or_else(unix_now, |epoch| epoch.saturating_add(boot.0.as_secs()))
    }

    /// How long to wait after a write that came to this.
    pub(super) fn wrote(
        &mut self,
        written: Result<(), Failed>,
        write: &Write,
        settings: &Settings,
    ) -> Duration {
        let Err(error) = written else {
            (self.trouble, self.failures) = (None, 0);
            self.row = self.row.saturating_add(1);
            // A few writes put everything right; whoever wants more is at odds with somebody.
            return if self.row < ROW { Duration::ZERO } else { PAUSES.1 };
        };
        let pause = PAUSES.0.saturating_mul(1 << self.failures.min(10)).min(PAUSES.1);
        self.failures = self.failures.saturating_add(1);
        // That somebody else was faster happens; that he always is does not.
        let ordinary = matches!(error, Failed::Api(ApiError::Overtaken(_)) | Failed::Permit(_));
        if ordinary && self.failures < 5 {
            debug!(%error, "not written");
        } else {
            self.trouble = Some(format!("{} cannot be written: {error}", write.words(settings)));
        }
        pause
    }
}

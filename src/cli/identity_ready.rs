//! `identity-ready`: an init container's program that waits for an identity.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use tracing_subscriber::filter::LevelFilter;

use super::environment::without_empty_variables;
use super::options::LogFormat;
use super::values::Span;
use crate::identity::{self, GaveUp};
use crate::run;

/// Waits until the SPIFFE Workload API gives this workload an X.509 SVID.
///
/// As an init container it keeps a pod from starting before it has an identity. Exit status: 0 an
/// SVID is there; 1 a timeout, a signal or a wrong option.
#[derive(Debug, Parser)]
#[command(name = "identity-ready", version, max_term_width = 100)]
pub struct IdentityReady {
    /// The socket of the Workload API.
    #[arg(
        long,
        env = "AETHER_SPIRE_WORKLOAD_SOCKET",
        value_name = "PATH",
        default_value = "/run/secrets/workload-spiffe-uds/socket"
    )]
    spire_workload_socket: PathBuf,

    /// How long to wait, as in 90s or 2m; 0 waits for ever.
    #[arg(
        long,
        env = "AETHER_TIMEOUT",
        value_name = "SPAN",
        default_value = "0",
        allow_hyphen_values = true
    )]
    timeout: Span,

    /// How the log looks.
    #[arg(
        long,
        env = "AETHER_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text",
        value_enum
    )]
    log_format: LogFormat,
}

impl IdentityReady {
    /// Reads the command line and the environment, and waits.
    pub fn main() -> ExitCode {
        let parsed = without_empty_variables(<Self as clap::CommandFactory>::command())
            .try_get_matches()
            .and_then(|matches| <Self as clap::FromArgMatches>::from_arg_matches(&matches));
        let asked = match parsed {
            Ok(asked) => asked,
            Err(error) => {
                // Nothing can be done where even this cannot be written.
                let _ = error.print();
                return ExitCode::from(u8::from(error.use_stderr()));
            }
        };
        asked.start_log();
        match asked.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                if let Some(GaveUp { after, told, hint }) = error.downcast_ref() {
                    tracing::error!(?after, hint, "no identity: {told}");
                } else {
                    tracing::error!("{error:#}");
                }
                ExitCode::FAILURE
            }
        }
    }

    fn run(&self) -> Result<()> {
        let Span(timeout) = self.timeout;
        let options = identity::Options {
            socket: self.spire_workload_socket.clone(),
            timeout: (timeout > Duration::ZERO).then_some(timeout),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("the runtime")?.block_on(run::identity_ready(options))
    }

    /// The process's own format, without the filters by module that would double this program.
    fn start_log(&self) {
        let log = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::INFO)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
        match self.log_format {
            LogFormat::Text => log.init(),
            LogFormat::Json => log.json().flatten_event(true).init(),
        }
    }
}

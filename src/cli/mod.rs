//! The commands, one file each.

pub mod access;
pub mod bootstrap;
pub mod check;
pub mod domains;
pub mod environment;
pub mod explain;
pub mod identity_ready;
pub mod inject;
pub mod kubernetes;
pub mod mesh_dns;
pub mod options;
pub mod pins;
pub mod remote;
pub mod render;
pub mod serve;
pub mod status;
pub mod values;
pub mod webhook;

use std::io;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// A control plane that captures the traffic between services on Kubernetes, and serves it to
/// Envoys.
///
/// Every option is an environment variable too: --xds-address is AETHER_XDS_ADDRESS. An empty one
/// counts as not set.
/// Results go to stdout, the log and errors to stderr.
#[derive(Debug, Parser)]
#[command(name = "aether", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    log: options::Log,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    Render(render::Render),
    Check(check::Check),
    Explain(explain::Explain),
    Inject(Box<inject::Inject>),
    Bootstrap(bootstrap::Bootstrap),
    Status(status::Status),
}

impl Cli {
    /// Does what was asked for, and says on stderr why it could not. The status is what the
    /// command says of it; otherwise 0, or 1 after an error. Where options are wrong it is 2,
    /// whether the parser sees it or we do.
    pub fn run(self) -> ExitCode {
        let done = self.log.start().and_then(|()| match &self.command {
            Command::Serve(serve) => serve.run().map(|()| ExitCode::SUCCESS),
            Command::Render(render) => render.run().map(|()| ExitCode::SUCCESS),
            Command::Check(check) => check.run(),
            Command::Explain(explain) => explain.run(),
            Command::Inject(inject) => inject.run(),
            Command::Bootstrap(bootstrap) => bootstrap.run().map(|()| ExitCode::SUCCESS),
            Command::Status(status) => status.run(),
        });
        match done {
            Ok(code) => code,
            // Whoever reads the output has read enough.
            Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("aether: {error:#}");
                match self.command {
                    Command::Check(_) => ExitCode::from(check::COULD_NOT_LOOK),
                    Command::Explain(_) if !error.is::<explain::NotExplained>() => {
                        ExitCode::from(check::COULD_NOT_LOOK)
                    }
                    Command::Status(_) => ExitCode::from(status::COULD_NOT_LOOK),
                    _ if error.is::<WrongOptions>() || error.is::<WrongSettings>() => {
                        ExitCode::from(WRONG_OPTIONS)
                    }
                    _ => ExitCode::FAILURE,
                }
            }
        }
    }
}

/// The exit status where options are wrong, the parser's own.
const WRONG_OPTIONS: u8 = 2;

/// Options that are good one by one and not together. As the context of an error, too.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct WrongOptions(&'static str);

/// The same, where what is wrong depends on the values.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct WrongSettings(String);

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>();
        io.or_else(|| json?.io_error_kind()) == Some(io::ErrorKind::BrokenPipe)
    })
}

/// Writes a result to stdout as JSON, for people to read.
fn print(value: &impl serde::Serialize) -> Result<()> {
    use std::io::Write;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from);
    written.and_then(|()| writeln!(out)).and_then(|()| out.flush()).context("stdout")
}

#[cfg(test)]
mod tests;

//! `aether status`: how each connected proxy stands.

mod table;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use jiff::Timestamp;

use super::remote::AdminUrl;
use crate::status::Nodes;

/// The exit status where the server could not be asked.
pub const COULD_NOT_LOOK: u8 = 2;

/// Print how each proxy stands that is connected to a running server.
///
/// A line for each stream: its node, from where it is connected, since when, and for each type
/// whether the proxy has all of it (synced), something is under way (pending), or it refused what
/// it was sent (refused), with its own words at the end of the line. A proxy whose node is not
/// known, or not managed, is waiting. The status is 0, or 2 where the server could not be asked.
#[derive(Debug, Clone, Args)]
pub struct Status {
    /// The admin server of a running `aether serve`: its `--admin-address`.
    #[arg(long, env = "AETHER_ADMIN", value_name = "URL", default_value = "http://127.0.0.1:8080")]
    admin: AdminUrl,

    /// Print JSON, with nonces, times and numbers.
    #[arg(long)]
    json: bool,
}

impl Status {
    /// Asks, and prints.
    pub fn run(&self) -> Result<ExitCode> {
        let nodes: Nodes = self.admin.get("/nodes")?;
        if self.json {
            super::print(&nodes)?;
        } else {
            let text = table::text(&nodes, Timestamp::now());
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("stdout")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

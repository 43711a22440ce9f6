//! `aether explain`: where a connection of a pod goes, and what decided each step.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::options::{Shaping, Source};
use crate::explain::{self, Destination, Question, Speaks};
use crate::model::PodKey;
use crate::run;

/// Say where a connection or request of a pod goes, step by step, and what decided each step.
///
/// How the name is resolved, whether the connection is redirected, which filter chain, virtual
/// host, cluster and endpoints take it: each with the object, the field and the rule behind it.
///
/// Exit status: 0 it is explained; 1 there is no such pod; 2 the objects cannot be looked at, or
/// an option is wrong.
#[derive(Debug, Clone, Args)]
pub struct Explain {
    /// Whose connection it is: `<namespace>/<name>`.
    #[arg(long, env = "AETHER_POD", value_name = "NS/NAME")]
    pod: PodKey,

    /// Where it goes: `host`, `host:port`, `ip:port` or `[ipv6]:port`, as the application would
    /// write it, `http://` and `https://` too. Without a port, 80 is meant.
    destination: Destination,

    /// What the connection speaks: `http`, `tls` or `tcp`, which is anything else. Without it each
    /// is told.
    #[arg(long, env = "AETHER_SPEAKS", value_name = "WHAT")]
    speaks: Option<Speaks>,

    /// One JSON object, for programs.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    shaping: Shaping,
}

impl Explain {
    /// Looks, and prints.
    pub fn run(&self) -> Result<ExitCode> {
        let question = Question {
            pod: self.pod.clone(),
            destination: self.destination.clone(),
            speaks: self.speaks,
        };
        let (translate, index) = self.shaping.settings()?;
        let explanation = run::explain(&question, &self.source.objects(), translate, index)?;
        if self.json {
            super::print(&explanation)?;
        } else {
            let mut out = io::stdout().lock();
            write!(out, "{}", explain::text(&explanation))
                .and_then(|()| out.flush())
                .context("stdout")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

//! `aether explain`: where a connection of a pod goes, and what decided each step.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::options::{Shaping, Source};
use super::remote::{AdminUrl, Refused};
use crate::explain::{self, Destination, ExplainError, Explanation, Question, Speaks};
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

    /// Ask a running `aether serve` by its `--admin-address`, as in http://127.0.0.1:8080, in place
    /// of reading objects. It knows since when something is wrong, and which pods are behind the
    /// proxy of its node; objects alone do not tell. The options below do not count then: the
    /// server has its own.
    #[arg(long, env = "AETHER_ADMIN", value_name = "URL",
          conflicts_with_all = ["manifests", "kubeconfig", "kube_context"])]
    admin: Option<AdminUrl>,

    /// One JSON object, for programs.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    shaping: Shaping,
}

/// There is nothing to explain, since the question is wrong; not that nobody could look.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotExplained(String);

impl Explain {
    /// Looks, and prints.
    pub fn run(&self) -> Result<ExitCode> {
        let explanation = match &self.admin {
            Some(admin) => self.ask(admin)?,
            None => self.look()?,
        };
        if self.json {
            super::print(&explanation)?;
        } else {
            let mut out = io::stdout().lock();
            let text = explain::text(&explanation);
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("stdout")?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// From objects that are read for it.
    fn look(&self) -> Result<Explanation> {
        let question = Question {
            pod: self.pod.clone(),
            destination: self.destination.clone(),
            speaks: self.speaks,
        };
        let (translate, index) = self.shaping.settings()?;
        let explained = run::explain(&question, &self.source.objects(), translate, index);
        explained.map_err(|error| match error.downcast_ref::<ExplainError>() {
            Some(ExplainError::NoPod(..)) => NotExplained(error.to_string()).into(),
            _ => error,
        })
    }

    /// From a server that runs.
    fn ask(&self, admin: &AdminUrl) -> Result<Explanation> {
        let (pod, destination) = (self.pod.to_string(), self.asked());
        let speaks = self.speaks.map(|speaks| format!("&speaks={}", speaks.word()));
        let speaks = speaks.unwrap_or_default();
        let (pod, destination) = (encoded(&pod), encoded(&destination));
        let answer = admin.get(&format!("/explain?pod={pod}&destination={destination}{speaks}"));
        answer.map_err(|error| match error.downcast_ref::<Refused>() {
            // Another version, or another program, has no such page, and says it otherwise.
            Some(refused) if refused.status == 404 && refused.words.starts_with("no pod ") => {
                NotExplained(refused.words.clone()).into()
            }
            _ => error,
        })
    }

    /// The destination as it was written, as far as it says more than host and port.
    fn asked(&self) -> String {
        let destination = &self.destination;
        let whole = destination.to_string();
        match destination.speaks {
            Some(Speaks::Http) => format!("http://{whole}"),
            Some(_) => format!("https://{whole}"),
            None if destination.port_said => whole,
            None => destination.authority(),
        }
    }
}

/// A text as a value behind the `?` of a URL.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let of = |byte: u8| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") };
    text.bytes().map(of).collect()
}

//! `mesh-dns`: the resolver of a node, a program of its own.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Result;
use clap::Parser;

use super::domains::Domains;
use super::environment::parse;
use super::options::Log;
use super::values::{Address, Resolvers, words};
use super::{WRONG_OPTIONS, WrongOptions};
use crate::dns;
use crate::run;

/// Resolves the names of the mesh from a file that `aether serve` writes, and forwards all others.
///
/// Answers `<name>.<namespace>.<mesh domain>` and the short names by UDP and TCP. A process that
/// is started beside another one, on the same addresses, takes over from it without a loss when
/// the other one is told to stop.
///
/// Every option is an environment variable too: --snapshot is AETHER_SNAPSHOT. An empty one
/// counts as not set.
#[derive(Debug, Parser)]
#[command(name = "mesh-dns", version, max_term_width = 100)]
pub struct MeshDns {
    /// The snapshot file. It need not be there yet, nor its folder.
    #[arg(
        long,
        env = "AETHER_SNAPSHOT",
        value_name = "PATH",
        default_value = "/var/lib/aether/mesh-dns/records.json"
    )]
    snapshot: PathBuf,

    /// Addresses to answer on by UDP and TCP, separated by commas; or give the option several times.
    #[arg(
        long,
        env = "AETHER_LISTEN",
        value_name = "ADDRESSES",
        default_value = "127.0.0.1:18054"
    )]
    listen: Vec<Listen>,

    /// Resolvers for all other names, separated by commas; or give the option several times. Those
    /// that answer are preferred, and of these the quickest
    /// [default: the nameservers of /etc/resolv.conf].
    #[arg(long, env = "AETHER_UPSTREAM", value_name = "ADDRESSES")]
    upstream: Vec<Resolvers>,

    #[command(flatten)]
    domains: Domains,

    /// Address of /metrics, /livez and /readyz over HTTP, or `none`.
    #[arg(long, env = "AETHER_METRICS_ADDRESS", value_name = "ADDRESS", default_value = "none")]
    metrics_address: Address,

    /// UDP sockets for each address, a thread each [default: one for each core, at most 4].
    #[arg(long, env = "AETHER_SOCKETS", value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    sockets: Option<u16>,

    /// Queries a second that one client address may ask by UDP; beyond it clients are sent to TCP
    /// [default: any number].
    #[arg(long, env = "AETHER_RATE_LIMIT", value_name = "QUERIES")]
    rate_limit: Option<NonZeroU32>,

    #[command(flatten)]
    log: Log,
}

/// What `mesh-dns` was asked for, checked.
#[derive(Debug, Clone)]
pub struct Options {
    /// The resolver's own.
    pub resolver: dns::Options,
    /// Where metrics and health are served; `None`: nowhere.
    pub admin: Option<SocketAddr>,
}

/// Addresses to listen on, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listen(Vec<SocketAddr>);

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = |word: &str| {
            word.parse::<SocketAddr>().map_err(|_| {
                format!("{word:?} is no IP address and port: write 127.0.0.1:18054 or [::1]:18054")
            })
        };
        let all = words(text).map(address).collect::<Result<Vec<_>, _>>()?;
        if all.is_empty() {
            Err("no address: leave the option out for the default".to_owned())
        } else {
            Ok(Self(all))
        }
    }
}

impl MeshDns {
    /// Reads the command line and the environment, and runs until it is told to stop. Says on
    /// stderr why it cannot.
    pub fn main() -> ExitCode {
        let asked: Self = parse();
        match asked.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mesh-dns: {error:#}");
                ExitCode::from(if error.is::<WrongOptions>() { WRONG_OPTIONS } else { 1 })
            }
        }
    }

    fn run(&self) -> Result<()> {
        let options = self.options()?;
        self.log.start()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(run::resolve(options))
    }

    fn options(&self) -> Result<Options> {
        let names = self.domains.names()?;
        let mut seen = BTreeSet::new();
        let listen = self.listen.iter().flat_map(|listen| listen.0.iter().copied());
        let cores = || std::thread::available_parallelism().map_or(2, usize::from).min(4);
        let resolver = dns::Options {
            snapshot: self.snapshot.clone(),
            // Twice the same would be one more socket, and nothing else.
            listen: listen.filter(|address| address.port() == 0 || seen.insert(*address)).collect(),
            upstream: self.upstream.iter().flat_map(|all| all.0.iter().copied()).collect(),
            names,
            sockets: self.sockets.map_or_else(cores, usize::from),
            limit: self.rate_limit,
        };
        Ok(Options { resolver, admin: self.metrics_address.0 })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use clap::CommandFactory;

    use super::*;

    fn options(line: &str) -> Result<Options, String> {
        let words = std::iter::once("mesh-dns").chain(line.split_whitespace());
        let parsed = MeshDns::try_parse_from(words).map_err(|error| error.to_string())?;
        parsed.options().map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn several_addresses_come_by_commas_and_by_repetition() {
        MeshDns::command().debug_assert();
        let many = "--listen 127.0.0.1:1,[::1]:1 --listen 127.0.0.1:1 --upstream 10.0.0.1 --upstream 10.0.0.2:54";
        let many = options(many).unwrap().resolver;
        let text = |all: &[SocketAddr]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(text(&many.listen), ["127.0.0.1:1", "[::1]:1"]);
        assert_eq!(text(&many.upstream), ["10.0.0.1:53", "10.0.0.2:54"]);
        assert!(options("").unwrap().admin.is_none());
        let plain = options("").unwrap().resolver;
        assert_eq!(text(&plain.listen), ["127.0.0.1:18054"]);
        assert!(plain.upstream.is_empty() && plain.limit.is_none());
        assert!((1..=4).contains(&plain.sockets));
    }

    #[test]
    fn wrong_values_are_named_with_the_way_out() {
        for (line, word) in [
            ("--listen localhost:53", "127.0.0.1:18054"),
            ("--listen 127.0.0.1", "127.0.0.1:18054"),
            ("--upstream dns", "10.96.0.10"),
            ("--mesh-domain svc", "two at least"),
            ("--metrics-address x", "none"),
            ("--sockets 0", "1..=64"),
            ("--rate-limit 0", "rate-limit"),
        ] {
            let told = options(line).unwrap_err();
            assert!(told.contains(word), "{line}: {told}");
        }
    }
}

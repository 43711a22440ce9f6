//! Measures what the closing notes tell of the resolver. Release builds, please:
//!
//! ```text
//! cargo build --release --workspace --bins
//! sudo target/release/dns_figures hand-over
//! sudo target/release/dns_figures compare --coredns PATH
//! ```

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use it::backend::DnsBackend;
use it::net::Netns;
use it::places;
use it::process::{Process, Spec, output};
use it::resolver::{Names, Resolver};

/// How many names there are.
const NAMES: usize = 1_000;
/// Where servers listen, in a network namespace of their own.
const SERVER: &str = "127.0.0.1:53";
/// The cluster's DNS.
const CLUSTER: &str = "127.0.0.2:53";

/// Measure mesh-dns. Needs root and dnsperf.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    figure: Figure,
}

#[derive(Debug, Subcommand)]
enum Figure {
    /// A load while the table changes ten times a second and the process is replaced three times.
    HandOver {
        /// For how long.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Queries a second.
        #[arg(long, default_value_t = 20_000)]
        queries: u64,
    },
    /// The same names from mesh-dns, Unbound (Debian's package) and CoreDNS, one after the other.
    Compare {
        /// For how long each.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// Queries a second of the run that is not at full speed.
        #[arg(long, default_value_t = 20_000)]
        queries: u64,
        /// A CoreDNS to compare with.
        #[arg(long)]
        coredns: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    match Arguments::parse().figure {
        Figure::HandOver { seconds, queries } => hand_over(seconds, queries).await,
        Figure::Compare { seconds, queries, coredns } => {
            compare(seconds, queries, coredns.as_deref()).await
        }
    }
}

/// The records of a turn: all addresses differ from those of the turn before.
fn records(turn: usize) -> Vec<(String, String)> {
    let each = |n: usize| {
        let ip = format!("10.{}.{}.{}", 96 + turn % 2, n / 250, n % 250 + 1);
        (format!("team-{}/svc-{n}", n % 20), ip)
    };
    (0..NAMES).map(each).collect()
}

fn write(names: &mut Names, turn: usize) -> Result<()> {
    let all = records(turn);
    let all: Vec<_> = all.iter().map(|(key, ip)| (key.as_str(), ip.as_str())).collect();
    names.write(&all, &[])
}

/// The names as dnsperf wants them.
fn questions(folder: &Path) -> Result<PathBuf> {
    let mut text = String::new();
    for (key, _) in records(0) {
        let (namespace, name) = key.split_once('/').context("a key")?;
        writeln!(text, "{name}.{namespace}.aether.internal A")?;
    }
    let path = folder.join("questions");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// The lines of dnsperf that matter, in one.
fn told(said: &str) -> String {
    let kept =
        ["Queries sent", "Queries lost", "Response codes", "Queries per second", "Average Latency"];
    let lines = said.lines().map(str::trim).filter(|line| kept.iter().any(|k| line.starts_with(k)));
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("; ")
}

fn dnsperf(node: &Netns, questions: &Path, seconds: u64, queries: Option<u64>) -> Command {
    let mut load = node.command("dnsperf");
    load.args(["-s", "127.0.0.1", "-d"]).arg(questions);
    load.args(["-l", &seconds.to_string(), "-c", "50", "-T", "1", "-t", "3"]);
    if let Some(queries) = queries {
        load.args(["-Q", &queries.to_string()]);
    }
    load
}

/// The CPU time of a process so far.
fn cpu(id: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.collect::<Result<Vec<_>, _>>()?.iter().sum();
    // The kernel counts hundredths for everybody.
    Ok(Duration::from_millis(ticks * 10))
}

async fn hand_over(seconds: u64, queries: u64) -> Result<()> {
    let (node, mut names) = (Netns::new()?, Names::new()?);
    write(&mut names, 0)?;
    let cluster = DnsBackend::start(&node, CLUSTER.parse()?, [].into()).await?;
    let listen: [SocketAddr; 1] = [SERVER.parse()?];
    let mut resolver =
        Resolver::start(&node, &names.path(), &listen, &[cluster.address()], &[]).await?;
    let questions = questions(resolver.folder())?;
    let mut load = dnsperf(&node, &questions, seconds, Some(queries));
    let load = tokio::task::spawn_blocking(move || output(&mut load));
    let (begun, mut turn, mut replaced) = (Instant::now(), 0, Vec::new());
    let mut used = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(seconds) {
        turn += 1;
        write(&mut names, turn)?;
        let quarters = begun.elapsed().as_secs() * 4 / seconds.max(1);
        if replaced.len() < 3 && u64::try_from(replaced.len())? < quarters {
            used += cpu(resolver.process().id())?;
            replaced.push(resolver.replace().await?);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    used += cpu(resolver.process().id())?;
    let said = load.await??;
    println!(
        "{turn} tables of {NAMES} names, processes replaced, each old one gone after {replaced:?}"
    );
    println!(
        "{}; CPU {used:.1?} in {seconds} s; resident {} kB",
        told(&said),
        resolver.resident()?
    );
    ensure!(said.contains("Queries lost:         0"), "answers were lost:\n{said}");
    Ok(())
}

async fn compare(seconds: u64, queries: u64, coredns: Option<&Path>) -> Result<()> {
    println!("{NAMES} names, {seconds} s each; dnsperf on the same two cores");
    let (node, mut names) = (Netns::new()?, Names::new()?);
    write(&mut names, 0)?;
    {
        let listen: [SocketAddr; 1] = [SERVER.parse()?];
        let cluster: [SocketAddr; 1] = [CLUSTER.parse()?];
        let mut resolver = Resolver::start(&node, &names.path(), &listen, &cluster, &[]).await?;
        measure("mesh-dns", &node, resolver.process(), seconds, queries)?;
    }
    let folder = places::folder()?;
    {
        let conf = folder.path().join("unbound.conf");
        std::fs::write(&conf, unbound_conf(folder.path())?)?;
        let args = ["-d", "-p", "-c", &conf.display().to_string()].map(str::to_owned);
        let mut unbound = start(&node, Path::new("/usr/sbin/unbound"), &args, folder.path())?;
        measure("Unbound", &node, &mut unbound, seconds, queries)?;
    }
    if let Some(coredns) = coredns {
        let (hosts, conf) = (folder.path().join("hosts"), folder.path().join("Corefile"));
        let mut text = String::new();
        for (key, ip) in records(0) {
            let (namespace, name) = key.split_once('/').context("a key")?;
            writeln!(text, "{ip} {name}.{namespace}.aether.internal")?;
        }
        std::fs::write(&hosts, text)?;
        let text = format!(
            "aether.internal:53 {{\n    bind 127.0.0.1\n    hosts {} {{\n        no_reverse\n    }}\n}}\n",
            hosts.display()
        );
        std::fs::write(&conf, text)?;
        let args = ["-conf", &conf.display().to_string()].map(str::to_owned);
        let mut coredns = start(&node, coredns, &args, folder.path())?;
        measure("CoreDNS", &node, &mut coredns, seconds, queries)?;
    }
    Ok(())
}

fn unbound_conf(folder: &Path) -> Result<String> {
    let mut text = format!(
        "server:\n  interface: 127.0.0.1\n  num-threads: 2\n  so-reuseport: yes\n  do-daemonize: no\n  \
         username: \"\"\n  chroot: \"\"\n  directory: \"{}\"\n  pidfile: \"\"\n  use-syslog: no\n  \
         module-config: \"iterator\"\n  local-zone: \"aether.internal.\" static\n",
        folder.display()
    );
    for (key, ip) in records(0) {
        let (namespace, name) = key.split_once('/').context("a key")?;
        writeln!(text, "  local-data: \"{name}.{namespace}.aether.internal. 5 A {ip}\"")?;
    }
    text.push_str("remote-control:\n  control-enable: no\n");
    Ok(text)
}

fn start(node: &Netns, program: &Path, args: &[String], folder: &Path) -> Result<Process> {
    let mut spec = Spec::new(program, args, &folder.join("server.log"));
    spec.netns = Some(node.name().to_owned());
    let mut process = Process::start(&spec)?;
    // Until it answers.
    let begun = Instant::now();
    loop {
        process.must_run()?;
        let mut dig = node.command("dig");
        dig.args(["@127.0.0.1", "svc-0.team-0.aether.internal", "+short", "+tries=1", "+time=1"]);
        if output(&mut dig).is_ok_and(|said| said.contains("10.")) {
            return Ok(process);
        }
        ensure!(
            begun.elapsed() < Duration::from_secs(20),
            "it does not answer:\n{}",
            process.log()
        );
    }
}

fn measure(
    name: &str,
    node: &Netns,
    process: &mut Process,
    seconds: u64,
    queries: u64,
) -> Result<()> {
    let folder = places::folder()?;
    let questions = questions(folder.path())?;
    // To be warm.
    output(&mut dnsperf(node, &questions, 1, None))?;
    for rate in [Some(queries), None] {
        let before = cpu(process.id())?;
        let said = output(&mut dnsperf(node, &questions, seconds, rate))?;
        let used = cpu(process.id())?.saturating_sub(before);
        let of = rate.map_or("full speed".to_owned(), |rate| format!("{rate}/s"));
        println!("{name} at {of}: {}; CPU {used:.2?}", told(&said));
    }
    Ok(())
}

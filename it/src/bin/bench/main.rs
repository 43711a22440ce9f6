//! The bench: our server beside others, under the same load, in one run. Run it by `it/bench`.

mod alone;
mod figures;
mod load;
mod plan;
mod ports;
mod report;
mod serve;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;

use crate::figures::Figures;
use crate::load::Tools;
use crate::plan::{Mode, Server, World};

/// Measure our server beside a floor that only copies bytes and two caches of another control plane.
#[derive(Debug, Parser)]
struct Arguments {
    /// Services x streams; may be repeated. 1000x1000 unless it is said.
    #[arg(long = "world", value_name = "SERVICESxSTREAMS")]
    worlds: Vec<World>,
    /// The protocol; may be repeated. Delta unless it is said.
    #[arg(long = "mode", value_name = "MODE", value_enum)]
    modes: Vec<Mode>,
    /// A server; may be repeated. All unless it is said.
    #[arg(long = "server", value_name = "SERVER", value_enum)]
    servers: Vec<Server>,
    /// Every world (1000x1000, 5000x500, 100x5000) over both protocols: most of an hour on two cores.
    #[arg(long, conflicts_with_all = ["worlds", "modes"])]
    all: bool,
    /// Further options for our server, as in --ours=--dns-filter.
    #[arg(long = "ours", value_name = "OPTION", allow_hyphen_values = true)]
    ours: Vec<String>,
    /// Where the load client and the other servers are. Without it, ours is measured alone.
    #[arg(long, value_name = "DIR")]
    tools: Option<PathBuf>,
    /// Where reports, logs and worlds go.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    it::program::run("bench", bench(arguments)).await
}

async fn bench(mut arguments: Arguments) -> Result<()> {
    if arguments.all {
        arguments.worlds = World::ALL.to_vec();
        arguments.modes = vec![Mode::Delta, Mode::Sotw];
    }
    if arguments.worlds.is_empty() {
        arguments.worlds = vec![World::DEFAULT];
    }
    if arguments.modes.is_empty() {
        arguments.modes = vec![Mode::Delta];
    }
    if arguments.servers.is_empty() {
        arguments.servers = Server::ALL.to_vec();
    }
    std::fs::create_dir_all(&arguments.out)
        .with_context(|| format!("{} could not be made", arguments.out.display()))?;
    for world in &arguments.worlds {
        match &arguments.tools {
            Some(tools) => {
                let tools = Tools { folder: tools, out: &arguments.out, ours: &arguments.ours };
                for mode in &arguments.modes {
                    beside_others(&tools, *world, *mode, &arguments.servers).await?;
                }
            }
            None => alone(*world, &arguments).await?,
        }
    }
    Ok(())
}

/// Measures each of the servers, one after another, and prints their figures side by side. One that fails is named,
/// and the others are measured all the same.
async fn beside_others(
    tools: &Tools<'_>,
    world: World,
    mode: Mode,
    servers: &[Server],
) -> Result<()> {
    let begun = Instant::now();
    let mut columns: Vec<(Server, Figures)> = Vec::new();
    let mut failed = 0;
    for server in servers.iter().filter(|server| server.speaks(mode)) {
        eprintln!("{world} {mode}: {server}, after {:.0?} …", begun.elapsed());
        match load::measure(tools, *server, world, mode).await {
            Ok(figures) => columns.push((*server, figures)),
            Err(error) => {
                failed += 1;
                eprintln!("{world} {mode}: {server} failed: {error:#}");
            }
        }
    }
    println!("\n{world}, {mode} ({:.0?})", begun.elapsed());
    print!("{}", table::compared(&columns));
    anyhow::ensure!(failed == 0, "{failed} of the servers could not be measured");
    Ok(())
}

/// Measures ours with the load client of this repository.
async fn alone(world: World, arguments: &Arguments) -> Result<()> {
    eprintln!("{world} delta: aether alone …");
    let figures = alone::measure(world, &arguments.out, &arguments.ours).await?;
    println!("\n{world}, delta, aether alone (bytes are those of the responses, without framing)");
    print!("{}", table::compared(&[(Server::Aether, figures)]));
    Ok(())
}

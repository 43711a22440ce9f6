//! One server under the load client of the bench.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use it::command::Call;

use crate::figures::{Change, Figures};
use crate::plan::{Mode, Server, World};
use crate::report::Report;
use crate::serve::Serving;

/// How long one server may be measured.
const LIMIT: Duration = Duration::from_mins(6);

/// The programs of the bench, and where their files go.
#[derive(Debug)]
pub struct Tools<'a> {
    /// Where the programs are.
    pub folder: &'a Path,
    /// Where worlds, logs and reports go.
    pub out: &'a Path,
    /// Further options for our server.
    pub ours: &'a [String],
}

/// A command that makes some changes of one kind.
struct Step {
    change: Change,
    command: String,
    times: usize,
}

/// Starts a server, measures it and ends it.
pub async fn measure(
    tools: &Tools<'_>,
    server: Server,
    world: World,
    mode: Mode,
) -> Result<Figures> {
    let (serving, steps) = if server == Server::Aether {
        let manifests = manifests(tools, world).await?;
        let serving = Serving::ours(&manifests, tools.out, tools.ours).await?;
        (serving, in_a_folder(tools, &manifests))
    } else {
        let serving = Serving::other(tools, server, world).await?;
        let steps = by_post(&serving);
        (serving, steps)
    };
    let name = format!("{}x{}-{mode}-{server}", world.services, world.streams);
    let report = tools.out.join(format!("{name}.json"));
    // One of an earlier run would be taken for this one's.
    let _ = std::fs::remove_file(&report);
    let mut args: Vec<String> = [
        ("-addr", serving.xds.to_string()),
        ("-server-pid", serving.id().to_string()),
        ("-streams", world.streams.to_string()),
        ("-mode", mode.to_string()),
        ("-label", name),
        ("-idle", "3s".to_owned()),
        ("-json", report.display().to_string()),
    ]
    .into_iter()
    .flat_map(|(flag, value)| [flag.to_owned(), value])
    .collect();
    let routes = if server.sends_virtual_hosts(mode) { "vhds" } else { "rds" };
    for step in &steps {
        let expect = match step.change {
            Change::Endpoint => "eds".to_owned(),
            Change::Http => format!("cds,eds,{routes}"),
            Change::Tcp => "cds,eds,lds".to_owned(),
        };
        args.extend(["-change-cmd".to_owned(), step.command.clone()]);
        args.extend(["-expect".to_owned(), expect]);
    }
    let times: Vec<String> = steps.iter().map(|step| step.times.to_string()).collect();
    args.extend(["-changes".to_owned(), times.join(",")]);
    let load = Call::new(&tools.folder.join("load")).args(&args).limit(LIMIT).run().await?;
    let report = Report::read(&report).with_context(|| {
        format!("the load client: {}", String::from_utf8_lossy(&load.stderr).trim())
    })?;
    if !load.status.success() {
        bail!("the load client: {}: {:?}", load.status, report.failures);
    }
    report.figures(steps.iter().map(|step| step.change))
}

/// Makes the folder anew, as each change can be made only once.
async fn manifests(tools: &Tools<'_>, world: World) -> Result<PathBuf> {
    let folder = tools.out.join("manifests");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let (services, pods) = (world.services.to_string(), world.streams.to_string());
    let call = Call::new(&tools.folder.join("manifests"));
    call.args(["-services", &services, "-pods", &pods, "-out"]).args([&folder]).text().await?;
    Ok(folder)
}

/// The changes as files of our folder.
fn in_a_folder(tools: &Tools<'_>, folder: &Path) -> Vec<Step> {
    let program = tools.folder.join("manifests");
    let kinds = [
        (Change::Endpoint, "endpoint", 10),
        (Change::Http, "service", 8),
        (Change::Tcp, "tcp-service", 2),
    ];
    let step = |(change, kind, times)| {
        let command =
            format!("'{}' -out '{}' -change {kind} -n $N", program.display(), folder.display());
        Step { change, command, times }
    };
    kinds.into_iter().map(step).collect()
}

/// The changes by HTTP. Every fifth Service that is added there is a TCP Service too: the last of five.
fn by_post(serving: &Serving) -> Vec<Step> {
    let step = |change, kind, times| {
        let command = format!("POST http://{}/change?kind={kind}", serving.http);
        Step { change, command, times }
    };
    vec![
        step(Change::Endpoint, "endpoint", 10),
        step(Change::Http, "service", 4),
        step(Change::Tcp, "service", 1),
        step(Change::Http, "service", 4),
        step(Change::Tcp, "service", 1),
    ]
}

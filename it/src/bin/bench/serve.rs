//! Servers to be measured.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use it::client;
use it::places;
use it::process::{Process, Spec, tail};
use tokio::time::{sleep, timeout};

use crate::load::Tools;
use crate::plan::{Server, World};
use crate::ports;

/// How long a server may take until it has read its world.
const START: Duration = Duration::from_mins(2);

/// One that serves. Dropped, it is killed.
#[derive(Debug)]
pub struct Serving {
    process: Process,
    /// Where it serves xDS.
    pub xds: SocketAddr,
    /// Where it answers HTTP: ours to be asked, the others to be told to change something.
    pub http: SocketAddr,
}

impl Serving {
    /// Our server over a folder of manifests, with these further options; its log and its socket in `out`.
    pub async fn ours(manifests: &Path, out: &Path, options: &[String]) -> Result<Self> {
        let [xds, http] = ports::free()?;
        let mut args: Vec<OsString> = vec!["serve".into(), "--manifests".into(), manifests.into()];
        args.extend(["--xds-address".into(), xds.to_string().into()]);
        args.extend(["--admin-address".into(), http.to_string().into()]);
        args.extend(["--xds-socket", "none"].map(OsString::from));
        // All streams come from one address here.
        for limit in ["--xds-max-peer-connections", "--xds-max-peer-streams"] {
            args.extend([limit, "20000"].map(OsString::from));
        }
        args.extend(options.iter().map(OsString::from));
        Self::start(
            &places::program("aether")?,
            args,
            &out.join("aether.log"),
            xds,
            http,
            "/readyz",
        )
        .await
    }

    /// One of the others, over a world that it makes up.
    pub async fn other(tools: &Tools<'_>, server: Server, world: World) -> Result<Self> {
        let [xds, http] = ports::free()?;
        let (program, options): (_, &[&str]) = match server {
            Server::FloorVhds => ("floor", &["-vhds"]),
            Server::Snapshot => ("peer", &["-cache", "snapshot"]),
            Server::Linear => ("peer", &["-cache", "linear"]),
            Server::Floor | Server::Aether => ("floor", &[]),
        };
        let mut args: Vec<OsString> = options.iter().map(OsString::from).collect();
        for (flag, value) in [
            ("-addr", xds.to_string()),
            ("-control", http.to_string()),
            ("-services", world.services.to_string()),
            ("-pods", world.streams.to_string()),
        ] {
            args.extend([flag.into(), value.into()]);
        }
        let log = tools.out.join(format!("{server}.log"));
        Self::start(&tools.folder.join(program), args, &log, xds, http, "/ready").await
    }

    async fn start(
        program: &Path,
        args: Vec<OsString>,
        log: &Path,
        xds: SocketAddr,
        http: SocketAddr,
        ready: &str,
    ) -> Result<Self> {
        let process = Process::start(&Spec::new(program, args, log))?;
        let mut serving = Self { process, xds, http };
        let begun = Instant::now();
        loop {
            serving.process.must_run()?;
            let asked =
                timeout(Duration::from_secs(5), client::get(http, "localhost", ready)).await;
            if let Ok(Ok(answer)) = asked
                && answer.status()? < 300
            {
                return Ok(serving);
            }
            if begun.elapsed() > START {
                let words = tail(&serving.process.log(), 20);
                bail!("{} is not ready after {START:?}:\n{words}", program.display());
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

//! `identity-ready` against a real SPIRE server and agent, at every stage of their lives.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use it::places;
use it::process::{Process, Spec};
use it::spire::Spire;
use nix::sys::signal::Signal;
use tempfile::TempDir;

/// Who waits; the entries are made for this user.
const USER: u32 = 12_345;
/// How long SPIRE may take to hand out what it has just got.
const SOON: Duration = Duration::from_mins(1);

/// A waiting process, with its log in a folder of its own.
struct Waiting {
    process: Process,
    begun: Instant,
    _folder: TempDir,
}

impl Waiting {
    fn start(socket: &Path, options: &[&str]) -> Result<Self> {
        let folder = places::folder()?;
        let mut args = vec![format!("--spire-workload-socket={}", socket.display())];
        args.extend(options.iter().map(|&option| option.to_owned()));
        let program = places::program_for_all("identity-ready")?;
        let mut spec = Spec::new(&program, args, &folder.path().join("log"));
        spec.user = Some(USER);
        Ok(Self { process: Process::start(&spec)?, begun: Instant::now(), _folder: folder })
    }

    /// Its exit status and its log.
    fn end(mut self, limit: Duration) -> Result<(Option<i32>, String, Duration)> {
        let status = self.process.wait(limit)?;
        Ok((status.code(), self.process.log(), self.begun.elapsed()))
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// It must go on waiting for this long.
    async fn waits(&mut self, long: Duration) -> Result<()> {
        tokio::time::sleep(long).await;
        self.process.must_run()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_waits_through_every_stage_and_goes_on_with_the_entry() -> Result<()> {
    // No agent at all, not even the folder of its socket.
    let mut spire = Spire::start_server().await?;
    let socket = spire.socket();
    let mut waiting = Waiting::start(&socket, &[])?;
    waiting.waits(Duration::from_secs(11)).await?;
    // An agent without an entry for this user.
    spire.start_agent().await?;
    waiting.waits(Duration::from_secs(3)).await?;
    // Killed, its socket left behind; and another one in its place.
    spire.kill_agent()?;
    ensure!(socket.exists(), "a killed agent leaves its socket");
    waiting.waits(Duration::from_secs(2)).await?;
    std::fs::remove_file(&socket)?;
    spire.start_agent().await?;
    waiting.waits(Duration::from_secs(1)).await?;
    spire.entry("ours", USER).await?;
    let (code, log, _) = waiting.end(SOON)?;
    ensure!(code == Some(0), "{log}");
    ensure!(log.contains("spiffe://it.example/ours"), "{log}");
    // What stood in the way was told, each with what to look at.
    ensure!(log.contains("still waiting: there is no socket"), "{log}");
    // With the entry there it is a matter of moments.
    let (code, log, took) = Waiting::start(&socket, &[])?.end(SOON)?;
    ensure!(code == Some(0) && took < Duration::from_secs(2), "{took:?}: {log}");
    Ok(())
}

/// As it is in an image `FROM scratch`: built by `it/static`, in a root with nothing in it but the socket.
#[tokio::test(flavor = "multi_thread")]
async fn alone_in_its_root_it_needs_nothing_but_the_socket() -> Result<()> {
    let mut spire = Spire::start_server().await?;
    spire.start_agent().await?;
    let root = places::folder()?;
    std::fs::copy(places::built("static/identity-ready")?, root.path().join("identity-ready"))?;
    std::fs::hard_link(spire.socket(), root.path().join("socket"))?;
    let start = |timeout: &str, log: &str| -> Result<Process> {
        let args = [
            format!("--userspec={USER}:{USER}"),
            root.path().display().to_string(),
            "/identity-ready".to_owned(),
            "--spire-workload-socket=/socket".to_owned(),
            format!("--timeout={timeout}"),
        ];
        let log = root.path().with_extension(log);
        Process::start(&Spec::new(Path::new("/usr/sbin/chroot"), args.to_vec(), &log))
    };
    let mut early = start("2s", "early")?;
    let status = early.wait(SOON)?;
    ensure!(status.code() == Some(1), "{}", early.log());
    ensure!(early.log().contains("registration entry"), "{}", early.log());
    spire.entry("alone", USER).await?;
    let mut ready = start("60s", "ready")?;
    let status = ready.wait(SOON)?;
    ensure!(status.code() == Some(0), "{}", ready.log());
    ensure!(ready.log().contains("spiffe://it.example/alone"), "{}", ready.log());
    let there: Vec<_> = std::fs::read_dir(root.path())?.collect::<Result<_, _>>()?;
    ensure!(there.len() == 2, "{there:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn timeouts_and_signals_at_every_stage_exit_1_with_the_last_real_error() -> Result<()> {
    let mut spire = Spire::start_server().await?;
    let socket = spire.socket();
    let ends = |words: &'static str| {
        let socket = socket.clone();
        move || -> Result<()> {
            let (code, log, took) = Waiting::start(&socket, &["--timeout=1s"])?.end(SOON)?;
            ensure!(code == Some(1) && log.contains(words), "{words:?}: {code:?} {log}");
            ensure!(took > Duration::from_secs(1) && took < Duration::from_secs(3), "{took:?}");
            for forever in ["--timeout=0", "--timeout=0s"] {
                let mut waiting = Waiting::start(&socket, &[forever])?;
                std::thread::sleep(Duration::from_millis(1_500));
                waiting.process.must_run()?;
                let told = Instant::now();
                waiting.signal(Signal::SIGTERM)?;
                let (code, log, _) = waiting.end(SOON)?;
                ensure!(code == Some(1) && log.contains(words), "{words:?}: {code:?} {log}");
                ensure!(told.elapsed() < Duration::from_secs(1), "{:?}", told.elapsed());
            }
            Ok(())
        }
    };
    let stage = |words| tokio::task::spawn_blocking(ends(words));
    stage("there is no socket").await??;
    spire.start_agent().await?;
    stage("registration entry").await??;
    // It takes connections and is silent: what it said before is gone with it.
    spire.pause_agent()?;
    stage("says nothing").await??;
    spire.resume_agent()?;
    spire.kill_agent()?;
    stage("nobody listens").await??;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_svid_does_not_count() -> Result<()> {
    let mut spire = Spire::start_server().await?;
    spire.start_agent().await?;
    let seconds = 5;
    spire.entry_for("short", &[&format!("unix:uid:{USER}")], Some(seconds)).await?;
    spire.wait_for(USER, &["spiffe://it.example/short"], SOON).await?;
    // Without its server the agent cannot renew what it has, and goes on handing it out.
    spire.stop_server()?;
    tokio::time::sleep(Duration::from_secs(u64::from(seconds) + 2)).await;
    let socket = spire.socket();
    let (code, log, _) = Waiting::start(&socket, &["--timeout=2s"])?.end(SOON)?;
    ensure!(code == Some(1), "{log}");
    eprintln!("{log}");
    ensure!(log.contains("expired") || log.contains("gives no identity"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_options_exit_1_and_it_says_after_ten_seconds_what_is_missing() -> Result<()> {
    let nowhere = Path::new("/nowhere/socket");
    for wrong in ["--timeout=-1s", "--timeout=soon", "--timeout", "--what"] {
        let (code, log, _) = Waiting::start(nowhere, &[wrong])?.end(SOON)?;
        ensure!(code == Some(1) && !log.contains("waiting"), "{wrong}: {code:?} {log}");
    }
    let (code, log, _) = Waiting::start(nowhere, &["--timeout=11s"])?.end(SOON)?;
    ensure!(code == Some(1), "{log}");
    ensure!(log.matches("still waiting").count() == 1, "{log}");
    ensure!(log.contains("csi.spiffe.io") && log.contains("/nowhere/socket"), "{log}");
    Ok(())
}

//! A named network namespace, and a way for this process to act in it.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;

use crate::process::output;

/// Where `ip netns` keeps its names.
const NAMES: &str = "/run/netns";

/// A network namespace `aether-<our process id>-<n>` with loopback up, and a runtime whose threads are in it. Dropped,
/// both go; what still runs in it is cut off.
#[derive(Debug)]
pub struct Netns {
    name: String,
    runtime: Option<Runtime>,
}

impl Netns {
    /// A new one. Needs root. The first one of a process sweeps what dead processes left behind.
    pub fn new() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        static SWEEP: Once = Once::new();
        if !Uid::effective().is_root() {
            bail!("the rig makes network namespaces and needs root: run `sudo it/test`");
        }
        SWEEP.call_once(sweep);
        let name =
            format!("aether-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        output(Command::new("ip").args(["netns", "add", &name]))?;
        // From here on dropping it removes the namespace.
        let mut netns = Self { name, runtime: None };
        // Duplicate address detection would hold back each IPv6 address for a second.
        netns.sysctl(&["net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0"])?;
        netns.ip("link set lo up\n")?;
        netns.runtime = Some(runtime(&netns.path())?);
        Ok(netns)
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that pins it.
    pub fn path(&self) -> PathBuf {
        Path::new(NAMES).join(&self.name)
    }

    /// Starts a future in this namespace: the sockets that it makes, and those of whatever it spawns, are there. The
    /// handle aborts it when dropped.
    pub fn spawn<T, F>(&self, future: F) -> Result<AbortOnDropHandle<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        Ok(AbortOnDropHandle::new(self.handle()?.spawn(future)))
    }

    /// Runs a future in this namespace. A panic in it (an assertion of a test, say) goes on in the caller.
    pub async fn run<T, F>(&self, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        match self.spawn(future)?.await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// The runtime whose threads are in this namespace.
    pub fn handle(&self) -> Result<Handle> {
        let runtime = self.runtime.as_ref().context("the namespace is being removed")?;
        Ok(runtime.handle().clone())
    }

    /// A command of another program in this namespace, as root.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path().display())).arg("--").arg(program);
        command
    }

    /// Runs `ip` in this namespace over these lines, each a command of it.
    pub fn ip(&self, lines: &str) -> Result<()> {
        feed(Command::new("ip").args(["-netns", &self.name, "-batch", "-"]), lines)
    }

    /// Sets kernel parameters of this namespace, each `name=value`.
    pub fn sysctl(&self, settings: &[&str]) -> Result<()> {
        output(self.command("sysctl").args(["-q", "-w"]).args(settings)).map(drop)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it is forbidden inside another runtime, where most tests drop their pods.
            runtime.shutdown_background();
        }
        if let Err(error) = output(Command::new("ip").args(["netns", "delete", &self.name])) {
            eprintln!("{error:#}");
        }
    }
}

/// Runs a program to its end over this input.
pub(super) fn feed(command: &mut Command, input: &str) -> Result<()> {
    let command = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{command:?}: run it/setup"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let done = child.wait_with_output()?;
    if !done.status.success() {
        let reason = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        bail!("{command:?} refused its input: {reason}\n{input}");
    }
    Ok(())
}

/// A runtime whose every thread is in the namespace that this file pins.
fn runtime(path: &Path) -> Result<Runtime> {
    let pin = File::open(path)?;
    let inode = pin.metadata()?.ino();
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("netns")
        .enable_all()
        .on_thread_start(move || {
            // There is nobody here to tell: whether it worked is asked below.
            let _ = setns(&pin, CloneFlags::CLONE_NEWNET);
        })
        .build()?;
    let (answer, answered) = std::sync::mpsc::channel();
    runtime.spawn(async move { answer.send(Path::new("/proc/thread-self/ns/net").metadata()) });
    if answered.recv()??.ino() != inode {
        runtime.shutdown_background();
        bail!("the kernel does not let us into {}: CAP_SYS_ADMIN is missing", path.display());
    }
    Ok(runtime)
}

/// Removes the namespaces and folders of rigs whose process is gone, and ends what still runs in them.
pub fn sweep() {
    let left = |folder: &str, prefix: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                let rest = name.strip_prefix(prefix).and_then(|rest| rest.split_once('-'));
                let owner = rest.and_then(|(owner, _)| owner.parse::<u32>().ok());
                owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists())
            })
            .map(|entry| entry.path())
            .collect()
    };
    // Another rig may sweep the same ones at this moment, so that one is gone already is no error.
    for path in left(NAMES, "aether-") {
        let name = path.file_name().unwrap_or_default();
        let inside =
            output(Command::new("ip").args(["netns", "pids"]).arg(name)).unwrap_or_default();
        for pid in inside.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = output(Command::new("ip").args(["netns", "delete"]).arg(name));
    }
    for path in left("/tmp", "aether-it-") {
        unmount_below(&path);
        let _ = std::fs::remove_dir_all(path);
    }
}

/// Takes away what is mounted in a folder, such as pinned namespaces. That there is nothing is no error, nor that
/// another rig was quicker.
pub fn unmount_below(folder: &Path) {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let places = table.lines().filter_map(|line| line.split(' ').nth(4)).map(Path::new);
    for place in places.filter(|place| place.starts_with(folder) && *place != folder) {
        let _ = output(Command::new("umount").args(["--lazy", "--quiet"]).arg(place));
    }
}

//! Processes that end with us.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A child process, its output in a file. Dropped, it is killed and waited for; it is killed by the kernel if this
/// process dies first.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables of its environment, on top of ours.
    pub env: Vec<(String, String)>,
    /// The name of the network namespace to start it in; ours where there is none.
    pub netns: Option<String>,
    /// The user and group to run it as, without any capability; ours where there is none.
    pub user: Option<u32>,
    /// Where its standard output and error go, appended.
    pub log: PathBuf,
}

impl Spec {
    /// This program with these arguments, in our own network namespace, as our own user.
    pub fn new<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
        log: &Path,
    ) -> Self {
        Self {
            program: program.to_owned(),
            args: args.into_iter().map(|arg| arg.as_ref().to_owned()).collect(),
            env: Vec::new(),
            netns: None,
            user: None,
            log: log.to_owned(),
        }
    }

    /// The command: `nsenter` and `setpriv` replace themselves, so the child's id is the program's own.
    fn command(&self) -> Result<Command> {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(netns) = &self.netns {
            words.extend([
                "nsenter".into(),
                format!("--net=/run/netns/{netns}").into(),
                "--".into(),
            ]);
        }
        words.extend(["setpriv", "--pdeathsig", "KILL"].map(OsString::from));
        if let Some(user) = self.user {
            words
                .extend([format!("--reuid={user}"), format!("--regid={user}")].map(OsString::from));
            words.extend(
                ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"].map(OsString::from),
            );
        }
        words.push("--".into());
        words.push(self.program.clone().into());
        let (first, rest) = words.split_first().context("a command has a first word")?;
        let out = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(first);
        command.args(rest).args(&self.args).envs(self.env.iter().cloned());
        // In a group of its own: Ctrl-C is for us, who then end it.
        command.process_group(0).stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        Ok(command)
    }
}

impl Process {
    /// Starts it.
    pub fn start(spec: &Spec) -> Result<Self> {
        let name = spec.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (answer, answered) = mpsc::channel();
        spawner()
            .send((spec.command()?, answer))
            .map_err(|_| anyhow::anyhow!("the thread that starts processes is gone"))?;
        let child = answered.recv()?.with_context(|| format!("{name} could not be started"))?;
        Ok(Self { name, child, log: spec.log.clone() })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Its exit status, once it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// An error with the end of its log if it has ended.
    pub fn must_run(&mut self) -> Result<()> {
        if let Some(status) = self.ended()? {
            bail!("{} ended ({status}); its last words:\n{}", self.name, tail(&self.log(), 30));
        }
        Ok(())
    }

    /// Sends a signal, if it still runs.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        // Not reaped yet, so its id cannot have become another's.
        if self.ended()?.is_none() {
            kill(Pid::from_raw(i32::try_from(self.id())?), signal)?;
        }
        Ok(())
    }

    /// Stops it where it stands (SIGSTOP), and waits until each of its threads has stopped.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::SIGSTOP)?;
        let start = Instant::now();
        while !self.is_stopped()? {
            self.must_run()?;
            if start.elapsed() > Duration::from_secs(10) {
                bail!("{} ({}) does not stop", self.name, self.id());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Lets it go on after [`Process::pause`].
    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::SIGCONT)
    }

    /// Whether all of its threads are stopped.
    fn is_stopped(&self) -> Result<bool> {
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.id()))? {
            // One that has ended meanwhile does nothing more either.
            let status = std::fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
            if status.lines().any(|line| line.starts_with("State:") && !line.contains("stopped")) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for its end, at most this long.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!(
            "{} still runs after {limit:?}; its last words:\n{}",
            self.name,
            tail(&self.log(), 30)
        )
    }

    /// Kills it with SIGKILL and waits for its end.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::SIGKILL)?;
        self.wait(Duration::from_secs(10))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("{} ({}) could not be ended: {error:#}", self.name, self.id());
        }
    }
}

/// Runs a program to its end and returns what it wrote on stdout; an error with what it wrote on stderr.
pub fn output(command: &mut Command) -> Result<String> {
    // In a group of its own: Ctrl-C is for us, who then undo what the program did.
    let done = command.process_group(0).stdin(Stdio::null()).output();
    let done = done.with_context(|| format!("{command:?} could not be started: run it/setup"))?;
    if !done.status.success() {
        bail!("{command:?}: {}: {}", done.status, String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The last lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}

type Order = (Command, mpsc::Sender<std::io::Result<Child>>);

/// The kernel sends the parent-death signal when the *thread* that started the child ends. Threads of a runtime come
/// and go, so one thread that lives as long as the process starts all children.
fn spawner() -> mpsc::Sender<Order> {
    static SPAWNER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let start = || {
        let (orders, taken) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in taken {
                // Whoever asked waits for it; if it is gone, nobody is left to tell.
                let _ = answer.send(command.spawn());
            }
        });
        orders
    };
    SPAWNER.get_or_init(start).clone()
}

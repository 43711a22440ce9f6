//! Programs that run to their end while the test goes on.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may take unless it is told otherwise.
const LIMIT: Duration = Duration::from_mins(2);

/// A call of a program. It is killed when its future is dropped, when its time is over, and with us.
#[derive(Debug)]
pub struct Call {
    words: Vec<OsString>,
    env: Vec<(String, OsString)>,
    user: Option<u32>,
    stdin: Vec<u8>,
    limit: Duration,
}

impl Call {
    /// A call without arguments or input.
    pub fn new(program: &Path) -> Self {
        let words = vec![program.as_os_str().to_owned()];
        Self { words, env: Vec::new(), user: None, stdin: Vec::new(), limit: LIMIT }
    }

    /// With these arguments after those it has.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.words.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// With this variable in its environment, on top of ours.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// As this user and group, without any capability.
    #[must_use]
    pub fn user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// With this on its standard input.
    #[must_use]
    pub fn stdin(mut self, input: &str) -> Self {
        self.stdin = input.as_bytes().to_vec();
        self
    }

    /// For at most this long (120 s unless it is said).
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end, whichever that is.
    pub async fn run(&self) -> Result<Output> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(user) = self.user {
            command.args([format!("--reuid={user}"), format!("--regid={user}")]);
            command.args(["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]);
        }
        command
            .arg("--")
            .args(&self.words)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In a group of its own: Ctrl-C is for us, who then end it.
        command.kill_on_drop(true).process_group(0);
        let run = async {
            let mut child =
                command.spawn().context("setpriv could not be started: run it/setup")?;
            let input = child.stdin.take();
            let feed = async {
                if let Some(mut input) = input {
                    // One that does not read its input to the end says why itself.
                    let _ = input.write_all(&self.stdin).await;
                }
            };
            anyhow::Ok(tokio::join!(child.wait_with_output(), feed).0?)
        };
        let done = timeout(self.limit, run).await;
        done.with_context(|| format!("{self}: not within {:?}", self.limit))?
    }

    /// Runs it and returns what it wrote on stdout; an error with its own words unless it succeeds.
    pub async fn text(&self) -> Result<String> {
        let done = self.run().await?;
        if !done.status.success() {
            bail!("{self}: {}: {}", done.status, String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut words = self.words.iter();
        let program = words.next().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        out.write_str(&program.to_string_lossy())?;
        words.try_for_each(|word| write!(out, " {}", word.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn shell(script: &str) -> Call {
        Call::new(Path::new("/bin/sh")).args(["-c", script])
    }

    #[tokio::test]
    async fn a_call_has_input_user_words_and_an_end() {
        assert_eq!(
            shell("cat; echo $A").stdin("in ").env("A", "b").text().await.unwrap(),
            "in b\n"
        );
        let wrong = shell("echo why >&2; exit 3").text().await.unwrap_err().to_string();
        assert!(wrong.starts_with("sh -c") && wrong.contains("why"), "{wrong}");
        // More than a pipe holds, of which nothing is read.
        shell("exec true").stdin(&"x".repeat(1 << 20)).text().await.unwrap();
        let start = std::time::Instant::now();
        let late = shell("sleep 60").limit(Duration::from_millis(200)).run().await.unwrap_err();
        assert!(late.to_string().contains("not within 200ms") && start.elapsed().as_secs() < 30);
        if nix::unistd::Uid::effective().is_root() {
            assert_eq!(shell("id -u; id -g").user(61_000).text().await.unwrap(), "61000\n61000\n");
        }
    }
}

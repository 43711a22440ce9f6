//! The answer to "are you ready?", in words.

use std::fmt;

use super::State;

/// How a process, or one part of it, is: a line for each part, and the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whether it can serve.
    pub ready: bool,
    lines: Vec<String>,
}

impl Report {
    pub(super) fn new(
        draining: bool,
        parts: impl IntoIterator<Item = (&'static str, State)>,
    ) -> Self {
        let mut ready = !draining;
        let mut lines = Vec::new();
        if draining {
            lines.push("stopping: connections are being drained".to_owned());
        }
        for (name, state) in parts {
            lines.push(match state {
                State::Ready => format!("{name}: ready"),
                State::Degraded(why) => format!("{name}: ready, but {why}"),
                State::Waiting(why) => {
                    ready = false;
                    format!("{name}: not ready: {why}")
                }
            });
        }
        Self { ready, lines }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "{}", if self.ready { "ready" } else { "not ready" })
    }
}

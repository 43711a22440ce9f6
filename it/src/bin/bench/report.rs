//! The load client's report, as far as it is printed.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::figures::{Change, Cost, Figures, Phase, median};

/// The report.
#[derive(Debug, Deserialize)]
pub struct Report {
    connect: Option<Connect>,
    idle: Option<Usage>,
    #[serde(default)]
    changes: Vec<Changes>,
    reconnect: Option<Connect>,
    calibration_before: Calibration,
    calibration_after: Calibration,
    /// What went wrong, in the load client's words.
    #[serde(default)]
    pub failures: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Connect {
    converged_ms: Dist,
    quiet_ms: f64,
    #[serde(flatten)]
    usage: Usage,
}

#[derive(Debug, Deserialize)]
struct Usage {
    wall_s: f64,
    server_cpu_s: f64,
    server_peak: f64,
    wire_in: f64,
}

#[derive(Debug, Deserialize)]
struct Changes {
    count: f64,
    wire_in_per_stream: f64,
    server_peak: f64,
    each: Vec<Once>,
}

#[derive(Debug, Deserialize)]
struct Once {
    latency_ms: Dist,
    server_cpu_ms: f64,
}

#[derive(Debug, Deserialize)]
struct Dist {
    p99: f64,
}

/// The CPU time of a fixed piece of work.
#[derive(Debug, Deserialize)]
struct Calibration {
    work_ms: f64,
}

impl Report {
    /// Reads one.
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read(file).with_context(|| format!("no {}", file.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("{} has another shape", file.display()))
    }

    /// Its figures, where these kinds of changes were made, in this order.
    pub fn figures(&self, kinds: impl IntoIterator<Item = Change>) -> Result<Figures> {
        let connect = self.connect.as_ref().context("nobody connected")?;
        let storm = self.reconnect.as_ref().context("nobody connected again")?;
        let mut figures = Figures {
            connect: connect.phase(),
            converged_s: connect.converged_ms.p99 / 1e3,
            peak: connect.usage.server_peak.max(storm.usage.server_peak),
            storm: storm.phase(),
            calibration: Some((self.calibration_before.work_ms, self.calibration_after.work_ms)),
            ..Figures::default()
        };
        if let Some(idle) = self.idle.as_ref().filter(|idle| idle.wall_s > 0.0) {
            figures.idle_ms = idle.server_cpu_s * 1e3 / idle.wall_s;
        }
        let made: Vec<(Change, &Changes)> = kinds.into_iter().zip(&self.changes).collect();
        for kind in Change::ALL {
            let some: Vec<&Changes> =
                made.iter().filter(|(of, _)| *of == kind).map(|(_, made)| *made).collect();
            let each = || some.iter().flat_map(|made| &made.each);
            let count: f64 = some.iter().map(|made| made.count).sum();
            if count <= 0.0 {
                continue;
            }
            let bytes: f64 = some.iter().map(|made| made.wire_in_per_stream * made.count).sum();
            let cost = Cost {
                cpu_ms: median(each().map(|once| once.server_cpu_ms).collect()),
                p99_ms: median(each().map(|once| once.latency_ms.p99).collect()),
                bytes: bytes / count,
            };
            figures.changes.insert(kind, cost);
            figures.peak = some.iter().fold(figures.peak, |peak, made| peak.max(made.server_peak));
        }
        Ok(figures)
    }
}

impl Connect {
    fn phase(&self) -> Phase {
        Phase {
            cpu_s: self.usage.server_cpu_s,
            quiet_s: self.quiet_ms / 1e3,
            bytes: self.usage.wire_in,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn changes_of_a_kind_are_one_figure_wherever_they_were_made() {
        let usage = r#""wall_s": 2, "server_cpu_s": 0.5, "server_peak": 7, "wire_in": 9"#;
        let dist = r#"{"p99": 1500}"#;
        let phase = format!(r#"{{"converged_ms": {dist}, "quiet_ms": 250, {usage}}}"#);
        let made = |count: usize, bytes: u32, cpu: u32| {
            let once = format!(r#"{{"latency_ms": {dist}, "server_cpu_ms": {cpu}}}"#);
            let each = vec![once; count].join(",");
            format!(
                r#"{{"count": {count}, "wire_in_per_stream": {bytes}, "server_peak": 8, "each": [{each}]}}"#
            )
        };
        let changes = [made(1, 100, 1), made(1, 7, 9), made(3, 200, 5)].join(",");
        let text = format!(
            r#"{{"connect": {phase}, "idle": {{{usage}}}, "changes": [{changes}], "reconnect": {phase},
                "calibration_before": {{"work_ms": 1}}, "calibration_after": {{"work_ms": 2}}}}"#
        );
        let report: Report = serde_json::from_str(&text).unwrap();
        let figures = report.figures([Change::Http, Change::Tcp, Change::Http]).unwrap();
        let http = Cost { cpu_ms: 5.0, p99_ms: 1500.0, bytes: 175.0 };
        assert_eq!(figures.changes[&Change::Http], http);
        assert_eq!(figures.changes[&Change::Tcp], Cost { cpu_ms: 9.0, p99_ms: 1500.0, bytes: 7.0 });
        assert!(!figures.changes.contains_key(&Change::Endpoint));
        let storm = Phase { cpu_s: 0.5, quiet_s: 0.25, bytes: 9.0 };
        assert_eq!((figures.storm, figures.peak, figures.idle_ms), (storm, 8.0, 250.0));
    }
}

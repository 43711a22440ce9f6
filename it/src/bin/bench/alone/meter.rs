//! CPU time and memory of a process.

use std::time::Duration;

use anyhow::{Context, Result};

/// Looks at one process.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    /// Its id.
    pub process: u32,
}

impl Meter {
    /// The CPU time of all its threads so far in seconds, by the scheduler's nanoseconds. Ours live as long as it does.
    pub fn cpu(self) -> Result<f64> {
        let mut nanoseconds = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.process))? {
            // One that ended meanwhile counts no more.
            let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else {
                continue;
            };
            let ran = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
            nanoseconds += ran.context("schedstat has another form")?;
        }
        Ok(Duration::from_nanos(nanoseconds).as_secs_f64())
    }

    /// The highest memory so far, in bytes.
    pub fn peak(self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).context("no VmHWM")?;
        Ok(kib.trim().parse::<f64>()? * 1024.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn work_costs_time_and_memory() {
        let meter = Meter { process: std::process::id() };
        let before = meter.cpu().unwrap();
        let mut page = vec![0_u8; 32 << 20];
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(50) {
            for byte in &mut page {
                *byte = byte.wrapping_add(1);
            }
        }
        assert!(meter.cpu().unwrap() - before > 0.005);
        assert!(meter.peak().unwrap() > f64::from(32 << 20));
    }
}

//! What is measured of a server.

use std::collections::BTreeMap;

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// One endpoint gets another address.
    Endpoint,
    /// An HTTP Service is added.
    Http,
    /// A TCP Service is added.
    Tcp,
}

impl Change {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Endpoint, Self::Http, Self::Tcp];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Endpoint => "one endpoint changes",
            Self::Http => "an HTTP service is added",
            Self::Tcp => "a TCP service is added",
        }
    }
}

/// What one change cost, the median of the times that it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// CPU time of the server, in milliseconds.
    pub cpu_ms: f64,
    /// From the change until 99 of 100 streams had it, in milliseconds.
    pub p99_ms: f64,
    /// What a stream received, in bytes: the mean.
    pub bytes: f64,
}

/// A phase in which all streams connect.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Phase {
    /// CPU time of the server, in seconds.
    pub cpu_s: f64,
    /// Until the server was quiet again, in seconds.
    pub quiet_s: f64,
    /// What all streams together received, in bytes.
    pub bytes: f64,
}

/// The figures of one server in one world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// All streams get all.
    pub connect: Phase,
    /// Until 99 of 100 streams had all, in seconds.
    pub converged_s: f64,
    /// CPU time of the server while nothing happened, in milliseconds a second.
    pub idle_ms: f64,
    /// The highest memory until the end of all, in bytes.
    pub peak: f64,
    /// What changes cost.
    pub changes: BTreeMap<Change, Cost>,
    /// All streams are dropped and connect again.
    pub storm: Phase,
    /// CPU time of a fixed piece of work before and after, in milliseconds; none where nobody looked.
    pub calibration: Option<(f64, f64)>,
}

/// The one in the middle; 0 of none.
pub fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        for (all, middle) in
            [(vec![], 0.0), (vec![7.0], 7.0), (vec![9.0, 1.0, 3.0], 3.0), (vec![4.0, 1.0], 4.0)]
        {
            assert!((median(all.clone()) - middle).abs() < f64::EPSILON, "{all:?}");
        }
    }
}

//! Watching.

use std::time::Duration;

use backon::ExponentialBuilder;
use kube::runtime::watcher::Config;

/// The first pause after a failure.
const FIRST: Duration = Duration::from_millis(200);

/// The watch of the one object of this name, which a Role can grant by its name.
pub fn only(name: &str) -> Config {
    Config::default().fields(&format!("metadata.name={name}"))
}

/// Pauses that double from 0.2 s up to `longest`, and are up to as much longer by chance, so that
/// replicas do not come at once. They never end.
pub fn backoff(longest: Duration) -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(FIRST)
        .with_max_delay(longest)
        .with_jitter()
        .without_max_times()
}

//! How long a change takes from a file to a request.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::backend::Http1Backend;
use crate::busy::{Busy, NAMESPACE};
use crate::client::Http1;
use crate::world::Object;

/// The service whose endpoint changes, and its ClusterIP.
const SERVICE: &str = "moving";
const CLUSTER_IP: &str = "10.96.3.1";
const PORT: u16 = 80;
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 96, 3, 1)), PORT);
/// How long a change may take at all.
const LIMIT: Duration = Duration::from_secs(10);

/// Durations, sorted.
#[derive(Debug, Clone)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// These.
    pub fn new(mut of: Vec<Duration>) -> Self {
        of.sort();
        Self(of)
    }

    /// The smallest that so many percent of all do not exceed; zero of none.
    pub fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(rank).copied().unwrap_or_default()
    }
}

/// Moves the one endpoint of a service back and forth between two pods, this often, by writing its slice anew, and
/// measures from before the writing to the first answer of the new pod. The first caller asks every other millisecond
/// on one connection, all of whose requests must be answered.
pub async fn of_endpoint_changes(busy: &Busy, changes: usize) -> Result<Latencies> {
    let caller = busy.callers.first().context("there is no caller")?;
    let pods = [busy.net.pod()?, busy.net.pod()?];
    let mut backends = Vec::new();
    let mut addresses = Vec::new();
    for (pod, name) in pods.iter().zip(["0", "1"]) {
        backends.push(Http1Backend::named(pod.netns(), pod.at(8080)?, name).await?);
        addresses.push(pod.v4()?);
    }
    let service = Object::service(NAMESPACE, SERVICE, CLUSTER_IP).port("web", PORT, "http");
    busy.world.put(SERVICE, &[service])?;
    let (seen, mut news) = watch::channel((String::new(), Instant::now()));
    let asking = caller.pod.netns().spawn(ask(seen))?;
    let mut all = Vec::new();
    for (n, (at, name)) in (0..=changes).zip(addresses.iter().zip(["0", "1"]).cycle()) {
        let slice = Object::slice(NAMESPACE, SERVICE, "1", false).target("web", 8080);
        let begun = Instant::now();
        busy.world.put("moving-endpoints", &[slice.endpoint(*at)])?;
        let came = match timeout(LIMIT, news.wait_for(|(seen, _)| seen == name)).await {
            Ok(Ok(news)) => news.1,
            Ok(Err(_)) => return Err(asking.await?.context("the requests ended")),
            Err(_) => bail!("change {n} is not there after {LIMIT:?}"),
        };
        // The first one brings the service itself.
        if n > 0 {
            all.push(came.saturating_duration_since(begun));
        }
        // Of different lengths, so that no rhythm of ours meets one of the server's.
        sleep(Duration::from_millis(20 + n as u64 * 7 % 40)).await;
    }
    Ok(Latencies::new(all))
}

/// Asks on and on, and says whenever it is another who answers. It ends with an error alone.
async fn ask(seen: watch::Sender<(String, Instant)>) -> Error {
    let request = format!("GET / HTTP/1.1\r\nHost: {SERVICE}.{NAMESPACE}\r\n\r\n");
    let mut http = match Http1::connect(ADDRESS).await {
        Ok(http) => http,
        Err(error) => return error,
    };
    loop {
        let answer = match http.exchange(request.as_bytes()).await {
            Ok(answer) => answer,
            Err(error) => return error,
        };
        let came = Instant::now();
        let known = !seen.borrow().0.is_empty();
        match answer.status() {
            Ok(200) if seen.borrow().0 != answer.text() => {
                seen.send_replace((answer.text(), came));
            }
            Ok(200) => {}
            // Before the service is known its requests are a stranger's.
            Ok(503) if !known => {}
            _ => return anyhow::anyhow!("a request was lost: {answer:?}"),
        }
        sleep(Duration::from_millis(1)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Latencies;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let all = Latencies::new((1..=100).rev().map(Duration::from_millis).collect());
        for (percent, expected) in [(50, 50), (99, 99), (100, 100), (0, 1)] {
            assert_eq!(all.percentile(percent), Duration::from_millis(expected), "{percent}");
        }
        let few = Latencies::new([3, 1, 2].map(Duration::from_millis).to_vec());
        assert_eq!(few.percentile(50), Duration::from_millis(2));
        assert_eq!(few.percentile(99), Duration::from_millis(3));
        assert_eq!(Latencies::new(Vec::new()).percentile(50), Duration::ZERO);
    }
}

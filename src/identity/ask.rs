//! One question to the Workload API.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use spiffe::transport::Endpoint;
use spiffe::{WorkloadApiClient, X509Svid};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Trouble;

/// An identity that holds at this time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The SPIFFE ID.
    pub id: String,
    /// For how long it holds.
    pub holds: Duration,
}

/// Asks once, on a connection of its own.
pub(super) async fn ask(socket: &Path) -> Result<Identity, Trouble> {
    let of = |error| Trouble::of(&error);
    let client = WorkloadApiClient::connect(Endpoint::Unix(socket.to_owned())).await.map_err(of)?;
    let svids = client.fetch_all_x509_svids().await.map_err(of)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let dated = svids.iter().map(|svid| (svid.spiffe_id().to_string(), ends(svid)));
    choose(dated, now)
}

/// The first that holds; else why none does.
fn choose(
    svids: impl Iterator<Item = (String, Option<Duration>)>,
    now: Duration,
) -> Result<Identity, Trouble> {
    let mut trouble = Trouble::Empty;
    for (id, ends) in svids {
        let Some(ends) = ends else {
            trouble = Trouble::Answer(format!("the certificate of {id} cannot be read"));
            continue;
        };
        match ends.checked_sub(now) {
            Some(holds) if !holds.is_zero() => return Ok(Identity { id, holds }),
            _ => trouble = Trouble::Expired { id, since: now.saturating_sub(ends) },
        }
    }
    Err(trouble)
}

/// When an SVID ends, since the epoch.
fn ends(svid: &X509Svid) -> Option<Duration> {
    let (_, certificate) = X509Certificate::from_der(svid.leaf().as_bytes()).ok()?;
    let ends = certificate.validity().not_after.timestamp();
    // One that ended before 1970 has ended.
    Some(Duration::from_secs(u64::try_from(ends).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn an_expired_svid_does_not_count_and_one_beside_it_does() {
        let seconds = Duration::from_secs;
        let svid = |id: &str, ends: u64| (id.to_owned(), Some(seconds(ends)));
        let chosen = |all: Vec<_>| choose(all.into_iter(), seconds(100));
        assert_eq!(chosen(vec![]), Err(Trouble::Empty));
        let expired = Trouble::Expired { id: "a".into(), since: seconds(10) };
        assert_eq!(chosen(vec![svid("a", 90)]), Err(expired));
        let this_moment = Trouble::Expired { id: "a".into(), since: seconds(0) };
        assert_eq!(chosen(vec![svid("a", 100)]), Err(this_moment));
        let good = Identity { id: "b".into(), holds: seconds(1) };
        assert_eq!(chosen(vec![svid("a", 90), svid("b", 101)]), Ok(good));
        assert!(matches!(chosen(vec![("a".into(), None)]), Err(Trouble::Answer(_))));
    }
}

//! How long certificates live, what they are for, and where they are kept.

use std::time::Duration;

/// How far the clocks of replicas and API servers may be apart. Certificates are valid from so long
/// before they are made, and a retired authority is trusted for so long after all that it signed has
/// expired, or for half a certificate's life where that is less.
const SKEW: Duration = Duration::from_hours(1);

/// Durations that do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongSettings {
    /// Certificates are dated in whole seconds.
    #[error(
        "{0:?} is too short a life for a certificate of the webhook, which is dated in seconds: \
         at least 3s (--webhook-cert-lifetime)"
    )]
    Short(Duration),
    /// An authority begins to be replaced when a third of its life is left.
    #[error(
        "an authority that lives for {authority:?} cannot sign certificates that live for \
         {certificate:?}: more than a third of its life; raise --webhook-ca-lifetime or lower \
         --webhook-cert-lifetime"
    )]
    Certificate {
        /// The authority's life.
        authority: Duration,
        /// The certificate's.
        certificate: Duration,
    },
    /// The next one would not sign in time.
    #[error(
        "an overlap of {overlap:?} is more than a sixth of the life of an authority, {authority:?}: \
         the next one would sign too late; lower --webhook-ca-overlap or raise --webhook-ca-lifetime"
    )]
    Overlap {
        /// The overlap.
        overlap: Duration,
        /// The authority's life.
        authority: Duration,
    },
}

/// What the certificates are set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Our own namespace, which the Secret is in.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// The name of the `MutatingWebhookConfiguration`.
    pub configuration: String,
    /// The names and addresses that a certificate is good for.
    pub names: Vec<String>,
    /// How long a certificate lives; it is renewed at two thirds of that.
    pub certificate: Duration,
    /// How long an authority lives; the next one is begun at two thirds of that.
    pub authority: Duration,
    /// How long the next authority stands in the bundle before it signs.
    pub overlap: Duration,
}

impl Settings {
    /// Seven days.
    pub const CERTIFICATE: Duration = Duration::from_hours(7 * 24);
    /// Ninety days.
    pub const AUTHORITY: Duration = Duration::from_hours(90 * 24);
    /// Five minutes: longer than the caches of an API server are behind.
    pub const OVERLAP: Duration = Duration::from_mins(5);

    /// Checks durations against each other.
    ///
    /// # Errors
    /// Where they do not go together.
    pub fn check(
        certificate: Duration,
        authority: Duration,
        overlap: Duration,
    ) -> Result<(), WrongSettings> {
        if certificate < Duration::from_secs(3) {
            return Err(WrongSettings::Short(certificate));
        }
        if certificate.saturating_mul(3) > authority {
            return Err(WrongSettings::Certificate { authority, certificate });
        }
        if overlap.saturating_mul(6) > authority {
            return Err(WrongSettings::Overlap { overlap, authority });
        }
        Ok(())
    }

    /// The names under which a Service of a namespace is called, the one that API servers use first.
    pub fn service_names(service: &str, namespace: &str, cluster_domain: &str) -> Vec<String> {
        let qualified = format!("{service}.{namespace}");
        vec![
            format!("{qualified}.svc"),
            format!("{qualified}.svc.{cluster_domain}"),
            qualified,
            service.to_owned(),
        ]
    }

    /// How long before it is made a certificate is valid.
    pub(super) fn backdate() -> u64 {
        SKEW.as_secs()
    }

    /// How long after all that it signed has expired an authority is trusted.
    pub(super) fn grace(&self) -> u64 {
        SKEW.min(self.certificate / 2).as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_go_together() {
        let check = |certificate, authority, overlap| {
            let seconds = Duration::from_secs;
            Settings::check(seconds(certificate), seconds(authority), seconds(overlap))
        };
        assert_eq!(check(3, 9, 1), Ok(()));
        assert!(matches!(check(2, 9, 1), Err(WrongSettings::Short(_))));
        assert!(matches!(check(3, 8, 1), Err(WrongSettings::Certificate { .. })));
        assert_eq!(check(3, 12, 2), Ok(()));
        assert!(matches!(check(3, 12, 3), Err(WrongSettings::Overlap { .. })));
        let (a, b, c) = (Settings::CERTIFICATE, Settings::AUTHORITY, Settings::OVERLAP);
        assert_eq!(Settings::check(a, b, c), Ok(()));
    }
}

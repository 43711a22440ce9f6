//! What is written to the API server, and which of several replicas does it.

use anyhow::{Context, Result};
use clap::{ArgAction, Args};

use super::WrongOptions;
use super::values::{Span, switch};
use crate::leader;
use crate::model::is_dns_label;

/// What is written to the API server, and by whom. With a folder of manifests nothing is.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Writing to the API server (without --manifests)")]
pub struct Kubernetes {
    /// Elect one of several replicas, which alone writes. With `false` this process always does,
    /// and must be the only one.
    #[arg(long, env = "AETHER_LEADER_ELECTION", value_name = "BOOL", default_value_t = true,
          action = ArgAction::Set, value_parser = switch)]
    leader_election: bool,

    /// Name of the Lease, which is in our own namespace.
    #[arg(long, env = "AETHER_LEASE_NAME", value_name = "NAME", default_value = "aether",
          value_parser = lease_name)]
    lease_name: String,

    /// How long the Lease of a leader that is gone keeps others waiting; whole seconds.
    #[arg(long, env = "AETHER_LEASE_DURATION", value_name = "SPAN", default_value = "15s")]
    lease_duration: Span,

    /// How long a leader that reaches no API server still leads: shorter than the lease duration.
    #[arg(long, env = "AETHER_LEASE_RENEW_DEADLINE", value_name = "SPAN", default_value = "10s")]
    lease_renew_deadline: Span,

    /// How often a leader renews its Lease.
    #[arg(long, env = "AETHER_LEASE_RENEW_INTERVAL", value_name = "SPAN", default_value = "2s")]
    lease_renew_interval: Span,

    /// Make a mesh Service for each ServiceAccount of running managed pods whose name no Service
    /// of a user claims.
    #[arg(long, env = "AETHER_GENERATE_SERVICES", value_name = "BOOL", default_value_t = true,
          action = ArgAction::Set, value_parser = switch)]
    generate_services: bool,
}

/// What was asked for, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// The election; `None`: this process always leads.
    pub election: Option<Election>,
    /// Whether mesh Services are generated.
    pub generate: bool,
}

/// The election that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    /// The name of the Lease.
    pub lease: String,
    /// The namespace of the Lease; `None`: that of the configuration.
    pub namespace: Option<String>,
    /// The durations.
    pub settings: leader::Settings,
}

impl Kubernetes {
    /// The options, checked together. `own_namespace` is ours, where it was named.
    pub fn options(&self, own_namespace: Option<&str>) -> Result<Writing> {
        let settings = leader::Settings::new(
            self.lease_duration.0,
            self.lease_renew_deadline.0,
            self.lease_renew_interval.0,
        );
        let settings = settings.context(WrongOptions(
            "--lease-duration, --lease-renew-deadline and --lease-renew-interval",
        ))?;
        let election = Election {
            lease: self.lease_name.clone(),
            namespace: own_namespace.map(str::to_owned),
            settings,
        };
        let election = self.leader_election.then_some(election);
        Ok(Writing { election, generate: self.generate_services })
    }
}

fn lease_name(text: &str) -> Result<String, String> {
    if is_dns_label(text) {
        return Ok(text.to_owned());
    }
    Err("no name: write at most 63 of a-z, 0-9 and '-', a letter or digit first and last"
        .to_owned())
}

//! The options of a certificate that we make ourselves.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use rustls::pki_types::ServerName;

use crate::admission::certs::Settings;
use crate::cli::WrongOptions;
use crate::cli::values::duration;
use crate::model::is_dns_label;

/// What the certificates are for, where their authority is kept, and how long they live.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_field_names, reason = "the fields are named as the options are")]
pub struct BuiltinArgs {
    /// Our webhook's MutatingWebhookConfiguration, whose caBundle we keep (builtin).
    #[arg(long, env = "AETHER_WEBHOOK_CONFIGURATION", value_name = "NAME",
          default_value = "aether", value_parser = name)]
    webhook_configuration: String,

    /// Our webhook's Service, in our own namespace: what the certificate is for (builtin).
    #[arg(long, env = "AETHER_WEBHOOK_SERVICE", value_name = "NAME",
          default_value = "aether-webhook", value_parser = name)]
    webhook_service: String,

    /// More names and addresses that the certificate is for, separated by commas (builtin).
    #[arg(long, env = "AETHER_WEBHOOK_NAMES", value_name = "NAMES", value_delimiter = ',',
          value_parser = host)]
    webhook_names: Vec<String>,

    /// The Secret in our own namespace that holds the authority (builtin).
    #[arg(long, env = "AETHER_WEBHOOK_SECRET", value_name = "NAME",
          default_value = "aether-webhook-ca", value_parser = name)]
    webhook_secret: String,

    /// How long a certificate is valid; it is renewed at two thirds of that (builtin).
    #[arg(long, env = "AETHER_WEBHOOK_CERT_LIFETIME", value_name = "DURATION",
          default_value = "168h", value_parser = duration)]
    webhook_cert_lifetime: Duration,

    /// How long an authority is valid; the next one is begun at two thirds of that (builtin).
    #[arg(long, env = "AETHER_WEBHOOK_CA_LIFETIME", value_name = "DURATION",
          default_value = "2160h", value_parser = duration)]
    webhook_ca_lifetime: Duration,

    /// How long the next authority stands in the caBundle before it signs: longer than any API
    /// server may be behind (builtin).
    #[arg(long, env = "AETHER_WEBHOOK_CA_OVERLAP", value_name = "DURATION",
          default_value = "5m", value_parser = duration)]
    webhook_ca_overlap: Duration,
}

/// What was asked for, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builtin {
    configuration: String,
    service: String,
    names: Vec<String>,
    secret: String,
    certificate: Duration,
    authority: Duration,
    overlap: Duration,
}

impl BuiltinArgs {
    /// The options, checked together.
    ///
    /// # Errors
    /// Where durations do not go together.
    pub(super) fn options(&self) -> Result<Builtin> {
        let (certificate, authority, overlap) =
            (self.webhook_cert_lifetime, self.webhook_ca_lifetime, self.webhook_ca_overlap);
        Settings::check(certificate, authority, overlap).context(WrongOptions(
            "--webhook-cert-lifetime, --webhook-ca-lifetime and --webhook-ca-overlap",
        ))?;
        let names = self.webhook_names.iter().filter(|name| !name.is_empty());
        Ok(Builtin {
            configuration: self.webhook_configuration.clone(),
            service: self.webhook_service.clone(),
            names: names.cloned().collect(),
            secret: self.webhook_secret.clone(),
            certificate,
            authority,
            overlap,
        })
    }
}

impl Builtin {
    /// What the certificates are set to, in this namespace of our own.
    pub fn settings(&self, namespace: &str, cluster_domain: &str) -> Settings {
        let mut names = Settings::service_names(&self.service, namespace, cluster_domain);
        names.extend(self.names.iter().cloned());
        Settings {
            namespace: namespace.to_owned(),
            secret: self.secret.clone(),
            configuration: self.configuration.clone(),
            names,
            certificate: self.certificate,
            authority: self.authority,
            overlap: self.overlap,
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    if text.len() <= 253 && text.split('.').all(is_dns_label) {
        return Ok(text.to_owned());
    }
    Err("no name of an object: write a-z, 0-9, '-' and '.', a letter or digit first and last"
        .to_owned())
}

fn host(text: &str) -> Result<String, String> {
    // An empty text is how an environment says "none".
    if text.is_empty() || ServerName::try_from(text).is_ok() {
        return Ok(text.to_owned());
    }
    Err("neither a DNS name nor an IP address: write names and addresses alone, without a port"
        .to_owned())
}

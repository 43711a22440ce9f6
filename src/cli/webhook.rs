//! The options of the pod-mutating webhook: what it gives a pod, and where it is served.

mod certificate;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};

use super::values::Address;
use super::{WrongOptions, WrongSettings};
use crate::admission::settings::{GateSpec, ResourceSpec};
use crate::admission::{Gate, Settings};
use crate::index;

pub use certificate::Builtin;

/// What the webhook gives a pod, the same for `serve` and `inject`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What the webhook gives a pod")]
pub struct Injection {
    /// Set the resolver options ndots, timeout and attempts of a pod, so that names of the mesh are
    /// asked as they are and a lost query costs a second. Options that a pod has are left alone.
    #[arg(long, env = "AETHER_INJECT_POD_NDOTS", value_name = "BOOL", default_value = "true",
          action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    inject_pod_ndots: bool,

    /// Put an init container before all others that waits for the pod's identity
    /// [default: on where --identity-gate-image names its image].
    #[arg(long, env = "AETHER_IDENTITY_GATE", value_name = "BOOL",
          action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    identity_gate: Option<bool>,

    /// Image of the identity gate: the one that holds /identity-ready.
    #[arg(long, env = "AETHER_IDENTITY_GATE_IMAGE", value_name = "IMAGE")]
    identity_gate_image: Option<String>,

    /// When the image is pulled: Always, IfNotPresent or Never.
    #[arg(
        long,
        env = "AETHER_IDENTITY_GATE_PULL_POLICY",
        value_name = "POLICY",
        default_value = "IfNotPresent"
    )]
    identity_gate_pull_policy: String,

    /// Path of the SPIFFE Workload API's socket inside the gate. Its folder is the CSI volume.
    #[arg(
        long,
        env = "AETHER_IDENTITY_GATE_SOCKET",
        value_name = "PATH",
        default_value = "/run/secrets/workload-spiffe-uds/socket"
    )]
    identity_gate_socket: String,

    /// How long the gate waits for an identity before it fails, as in 90s; 0 waits for ever
    /// [default: what /identity-ready itself takes].
    #[arg(long, env = "AETHER_IDENTITY_GATE_TIMEOUT", value_name = "DURATION")]
    identity_gate_timeout: Option<String>,

    /// The user and group that the gate runs as, by number.
    #[arg(
        long,
        env = "AETHER_IDENTITY_GATE_USER",
        value_name = "UID",
        default_value = "65532",
        allow_negative_numbers = true
    )]
    identity_gate_user: i64,

    /// CPU that the gate requests [default: as the pod's first container, limits likewise].
    #[arg(long, env = "AETHER_IDENTITY_GATE_CPU_REQUEST", value_name = "QUANTITY")]
    identity_gate_cpu_request: Option<String>,

    /// CPU that the gate is limited to.
    #[arg(long, env = "AETHER_IDENTITY_GATE_CPU_LIMIT", value_name = "QUANTITY")]
    identity_gate_cpu_limit: Option<String>,

    /// Memory that the gate requests [default: as the pod's first container, limits likewise].
    #[arg(long, env = "AETHER_IDENTITY_GATE_MEMORY_REQUEST", value_name = "QUANTITY")]
    identity_gate_memory_request: Option<String>,

    /// Memory that the gate is limited to.
    #[arg(long, env = "AETHER_IDENTITY_GATE_MEMORY_LIMIT", value_name = "QUANTITY")]
    identity_gate_memory_limit: Option<String>,
}

impl Injection {
    /// What the webhook is set to.
    ///
    /// # Errors
    /// All that is wrong with the gate's options, at once.
    pub fn settings(&self, index: index::Settings) -> Result<Settings> {
        let image = self.identity_gate_image.clone().filter(|image| !image.is_empty());
        let on = self.identity_gate.unwrap_or(image.is_some());
        // What is switched off may be set to anything: it is a chart's values, often.
        let gate = on.then(|| Gate::new(self.gate(image.unwrap_or_default()))).transpose();
        let gate = gate.map_err(|problems| WrongSettings(problems.to_string()))?;
        Ok(Settings { index, pod_ndots: self.inject_pod_ndots, gate })
    }

    fn gate(&self, image: String) -> GateSpec {
        // An empty text is how an environment says "not set".
        let set = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        let resource = |request, limit| ResourceSpec { request: set(request), limit: set(limit) };
        GateSpec {
            image,
            pull_policy: self.identity_gate_pull_policy.clone(),
            socket: self.identity_gate_socket.clone(),
            timeout: set(&self.identity_gate_timeout),
            user: self.identity_gate_user,
            cpu: resource(&self.identity_gate_cpu_request, &self.identity_gate_cpu_limit),
            memory: resource(&self.identity_gate_memory_request, &self.identity_gate_memory_limit),
        }
    }
}

/// Where the webhook is served, and with which certificate.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Webhook")]
// The names of the fields are those of the options.
#[allow(clippy::struct_field_names)]
pub struct Webhook {
    /// Address of the pod-mutating webhook (HTTPS), as in 0.0.0.0:9443, or `none`.
    #[arg(long, env = "AETHER_WEBHOOK_ADDRESS", value_name = "ADDRESS", default_value = "none")]
    webhook_address: Address,

    /// Where its certificate comes from: made here and kept in order (builtin), or a pair of files
    /// that is read again when it changes (files).
    #[arg(
        long,
        env = "AETHER_WEBHOOK_CERT_MODE",
        value_name = "MODE",
        default_value = "builtin",
        value_enum
    )]
    webhook_cert_mode: CertMode,

    /// The certificate's chain, PEM (files).
    #[arg(long, env = "AETHER_WEBHOOK_CERT", value_name = "FILE")]
    webhook_cert: Option<PathBuf>,

    /// Its private key, PEM (files).
    #[arg(long, env = "AETHER_WEBHOOK_KEY", value_name = "FILE")]
    webhook_key: Option<PathBuf>,

    #[command(flatten)]
    builtin: certificate::BuiltinArgs,

    /// How long the webhook goes on when it is told to stop, as in 5s: until then the API server
    /// may still call it.
    #[arg(long, env = "AETHER_WEBHOOK_DRAIN", value_name = "DURATION", default_value = "5s",
          value_parser = duration)]
    webhook_drain: Duration,
}

/// Where the webhook's certificate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CertMode {
    /// We are our own authority, kept in a Secret.
    Builtin,
    /// A pair of files.
    Files,
}

/// The webhook as it was asked for, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Where it listens. Port 0 takes any that is free.
    pub address: SocketAddr,
    /// Its certificate.
    pub certificate: Certificate,
    /// How long it goes on when it is told to stop.
    pub drain: Duration,
    /// What it gives a pod.
    pub settings: Settings,
}

/// The webhook's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificate {
    /// Made here.
    Builtin(Builtin),
    /// From files.
    Files {
        /// The chain.
        cert: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

impl Webhook {
    /// The webhook, if it is on.
    ///
    /// # Errors
    /// Where options do not go together, or the gate's are wrong.
    pub fn options(
        &self,
        injection: &Injection,
        index: &index::Settings,
    ) -> Result<Option<Options>> {
        // A wrong value is refused whether the webhook is on or not.
        let settings = injection.settings(index.clone())?;
        let builtin = self.builtin.options()?;
        let files = (self.webhook_cert.clone(), self.webhook_key.clone());
        let certificate = match (self.webhook_cert_mode, files) {
            (CertMode::Files, (Some(cert), Some(key))) => Certificate::Files { cert, key },
            (CertMode::Files, _) => bail!(WrongOptions(
                "--webhook-cert-mode files needs both --webhook-cert FILE and --webhook-key FILE"
            )),
            (CertMode::Builtin, (None, None)) => Certificate::Builtin(builtin),
            (CertMode::Builtin, _) => bail!(WrongOptions(
                "--webhook-cert and --webhook-key are for --webhook-cert-mode files"
            )),
        };
        let drain = self.webhook_drain;
        let options = |address| Options { address, certificate, drain, settings };
        Ok(self.webhook_address.0.map(options))
    }
}

/// A duration: a number with ms, s or m.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits).unwrap_or_default();
    let millis = match unit {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "" if number == "0" => Some(0),
        _ => None,
    };
    let number = number.parse::<u32>().ok().map(u64::from);
    let (Some(number), Some(millis)) = (number, millis) else {
        return Err("no duration: write 500ms, 5s, 1m or 0".to_owned());
    };
    Ok(Duration::from_millis(number * millis))
}

#[cfg(test)]
mod tests;

//! The webhook, wired: its certificate, its address, its server.

use std::net::TcpListener;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tracing::{error, info};

use super::kept::{self, Kept};
use crate::admin;
use crate::admission::certs::files::{self, Files, Pair};
use crate::admission::certs::{self, Keeper, Kubernetes, Slot};
use crate::admission::metrics::Metrics;
use crate::admission::server::{self, Limits, Webhook};
use crate::cli::serve::Options as Serve;
use crate::cli::webhook::{Builtin, Certificate, Options};
use crate::health::{Health, Part};
use crate::leader::Leadership;
use crate::permissions::Permission;
use crate::source::kubernetes::Connection;

/// A webhook that can be started: its address is bound, and its certificate can be had.
pub(super) struct Bound {
    options: Options,
    listener: TcpListener,
    certificate: Source,
}

/// Begins the task that keeps the certificate.
type Begin = Box<dyn FnMut() -> BoxFuture<'static, ()> + Send>;

/// Where the certificate comes from.
enum Source {
    Builtin { settings: Box<certs::Settings>, connection: Connection },
    Files(Files, Pair),
}

/// Binds the webhook that was asked for, if one was. `connection` is the API server, where objects
/// come from one.
///
/// # Errors
/// Where its certificate cannot be had or its address cannot be bound.
pub(super) fn bind(options: &Serve, connection: Option<&Connection>) -> Result<Option<Bound>> {
    let Some(webhook) = options.webhook.clone() else { return Ok(None) };
    let certificate = match &webhook.certificate {
        Certificate::Builtin(builtin) => self::builtin(builtin, options, connection)?,
        Certificate::Files { cert, key } => {
            let files = files::files(cert.clone(), key.clone());
            let first = files.read(certs::unix_now())?;
            Source::Files(files, first)
        }
    };
    let listener = TcpListener::bind(webhook.address)
        .with_context(|| format!("--webhook-address: {} cannot be bound", webhook.address))?;
    Ok(Some(Bound { options: webhook, listener, certificate }))
}

fn builtin(builtin: &Builtin, options: &Serve, connection: Option<&Connection>) -> Result<Source> {
    let Some(connection) = connection else {
        bail!(
            "--webhook-cert-mode builtin keeps its authority in a Secret of a Kubernetes API \
             server, which there is none here: use --webhook-cert-mode files with --webhook-cert \
             and --webhook-key"
        );
    };
    let settings = Box::new(settings(builtin, options, connection));
    Ok(Source::Builtin { settings, connection: connection.clone() })
}

/// What the certificates are set to: our own namespace is the one that was named, else that of the
/// connection.
fn settings(builtin: &Builtin, options: &Serve, connection: &Connection) -> certs::Settings {
    let namespace = options.own_namespace.as_deref().unwrap_or(&connection.namespace);
    builtin.settings(namespace, options.index.names.cluster_domain())
}

/// What the webhook's certificate needs to be allowed, beside what all may.
pub(super) fn permissions(options: &Serve, connection: &Connection) -> Vec<Permission> {
    let Some(Certificate::Builtin(builtin)) =
        options.webhook.as_ref().map(|webhook| &webhook.certificate)
    else {
        return Vec::new();
    };
    let settings = settings(builtin, options, connection);
    let secret = |verb, name: Option<&String>| Permission {
        verb,
        group: "",
        resource: "secrets",
        namespace: Some(settings.namespace.clone()),
        name: name.cloned(),
    };
    let configuration = |verb| Permission {
        verb,
        group: "admissionregistration.k8s.io",
        resource: "mutatingwebhookconfigurations",
        namespace: None,
        name: Some(settings.configuration.clone()),
    };
    let name = Some(&settings.secret);
    // What there is not yet has no name that a rule could name.
    let mut all = vec![secret("create", None)];
    all.extend(["get", "list", "watch", "update", "delete"].map(|verb| secret(verb, name)));
    all.extend(["get", "list", "watch", "patch"].map(configuration));
    all
}

impl Bound {
    /// Serves it until `stop`, and its drain after that. `leadership` says who keeps the authority.
    ///
    /// # Errors
    /// Where there is no TLS to be had.
    pub(super) fn start(
        self,
        leadership: Option<&Leadership>,
        health: &Health,
        metrics: &admin::Metrics,
        kept: &Kept,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<JoinHandle<()>> {
        let Self { options, listener, certificate } = self;
        let slot = Arc::new(Slot::default());
        let tls = server::tls(slot.clone()).context("the webhook's TLS")?;
        let address = listener.local_addr().unwrap_or(options.address);
        info!(%address, gate = options.settings.gate.is_some(), "the webhook on HTTPS");
        // Of its own: a webhook that cannot serve takes no proxy's configuration away.
        let part = health.apart("webhook");
        let reviews = Metrics::default();
        metrics.register(|registry| reviews.register(registry));
        let keep = certificate.keep(leadership, slot, part.clone(), metrics);
        let kept = kept.clone();
        let webhook = Arc::new(Webhook::new(options.settings, reviews, Limits::default()));
        Ok(tokio::spawn(async move {
            let served = server::serve(listener, tls, webhook, stop, options.drain);
            // Whatever ends one of the two, the other must not say that all is well.
            let served = AssertUnwindSafe(served).catch_unwind();
            let ended = tokio::select! {
                served = served => match served {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => error.to_string(),
                    Err(panic) => kept::words(panic.as_ref()),
                },
                () = kept.keep("webhook certificate", keep, |words| part.waiting(words)) => "nobody keeps its certificate".to_owned(),
            };
            error!("the webhook ended: {ended}");
            part.waiting(format!("it ended: {ended}; start this process anew"));
        }))
    }
}

impl Source {
    /// What keeps a certificate in the slot, for ever; it can be begun anew.
    fn keep(
        self,
        leadership: Option<&Leadership>,
        slot: Arc<Slot>,
        health: Part,
        metrics: &admin::Metrics,
    ) -> Begin {
        let counts = certs::Metrics::default();
        metrics.register(|registry| counts.register(registry));
        match self {
            Self::Builtin { settings, connection } => {
                let kubernetes = Kubernetes::new(connection.client, &settings);
                let leadership = leadership.cloned().unwrap_or_else(Leadership::alone);
                let (settings, metrics) = (*settings, counts);
                let keeper = Keeper { kubernetes, leadership, settings, slot, health, metrics };
                Box::new(move || keeper.clone().run().boxed())
            }
            Self::Files(files, first) => Box::new(move || {
                let (slot, health, counts) = (slot.clone(), health.clone(), counts.clone());
                files::follow(files.clone(), first.clone(), slot, health, counts).boxed()
            }),
        }
    }
}

//! What is to be done: a pure function of what was read, what is remembered, and time.

use std::time::Duration;

use super::authority::{Authorities, Authority, Now};
use super::bundle::{Configuration, Entry};
use super::memory::Memory;
use super::rotation::{self, Contents, Due};
use super::secret::Secret;
use super::serve::{Serve, Served, serve};
use super::settings::Settings;
use crate::leader::Boot;

/// The longest time between two looks: a clock may have been set meanwhile.
const LOOK: Duration = Duration::from_mins(1);

/// What a decision is made of.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The Secret, read for this decision.
    pub secret: &'a Secret,
    /// The configuration, read for this decision.
    pub configuration: &'a Configuration,
    /// What was read before, this reading included.
    pub memory: &'a Memory,
    /// The certificate that is presented.
    pub served: Option<&'a Served>,
    /// Whether this process may write.
    pub leader: bool,
    /// The time.
    pub now: Now,
}

/// Something to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Create the Secret.
    Create(Contents),
    /// Replace its data, where it still has this version.
    Replace(String, Contents),
    /// Delete it, since nobody may change it. It is created anew then.
    Delete {
        /// Its uid.
        uid: String,
        /// Its version.
        version: String,
    },
    /// Give these entries this bundle, where the configuration still has this version.
    Bundle {
        /// The version.
        version: String,
        /// Index and name of each entry.
        entries: Vec<(usize, String)>,
        /// What the bundle is to hold, in its order.
        trusted: Vec<Authority>,
    },
}

impl Write {
    /// What is written, for metrics.
    pub fn object(&self) -> &'static str {
        match self {
            Self::Create(_) | Self::Replace(..) | Self::Delete { .. } => "secret",
            Self::Bundle { .. } => "configuration",
        }
    }

    /// The operation, for logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Replace(..) => "replace",
            Self::Delete { .. } => "delete",
            Self::Bundle { .. } => "patch",
        }
    }

    /// What is written, in words.
    pub(super) fn words(&self, settings: &Settings) -> String {
        match self {
            Self::Bundle { .. } => format!("the caBundle of {}", configuration_of(settings)),
            _ => secret_of(settings),
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// One thing to write; then everything is read again.
    pub write: Option<Write>,
    /// What to present.
    pub serve: Serve,
    /// Whether API servers trust what is presented; if not, why, and what to do about it.
    pub ready: Result<(), String>,
    /// What else is wrong.
    pub findings: Vec<String>,
    /// When to look again although nothing happens.
    pub wake_at: Boot,
}

/// Decides what is to be done.
pub fn plan(observed: &Observed<'_>, settings: &Settings) -> Plan {
    let Observed { secret, configuration, memory, served, leader, now } = *observed;
    let mut plan = Plan {
        write: None,
        serve: serve(served, secret, memory, settings, now),
        ready: ready(observed, settings),
        findings: findings(observed, settings),
        wake_at: now.boot + LOOK,
    };
    if let Serve::Keep(until) = plan.serve {
        plan.wake_at = plan.wake_at.min(until);
    }
    if !leader || matches!(configuration, Configuration::Unknown(_)) {
        return plan;
    }
    plan.write = match secret {
        Secret::Unknown(_) => None,
        Secret::Absent => Some(Write::Create(rotation::anew(memory, configuration, settings, now))),
        Secret::Found { uid, version, immutable, contents, .. } => {
            let change = match contents {
                Err(_) => Some(rotation::anew(memory, configuration, settings, now)),
                Ok(authorities) => {
                    match rotation::next(authorities, memory, configuration, settings, now) {
                        Due::Now(contents) => Some(*contents),
                        Due::At(at) => {
                            plan.wake_at = plan.wake_at.min(at);
                            None
                        }
                    }
                }
            };
            match (change, contents) {
                (Some(_), _) if *immutable => {
                    Some(Write::Delete { uid: uid.clone(), version: version.clone() })
                }
                (Some(change), _) => Some(Write::Replace(version.clone(), change)),
                (None, Ok(known)) => {
                    bundles(configuration, &rotation::trusted(known, memory, settings, now))
                }
                (None, Err(_)) => None,
            }
        }
    };
    plan
}

/// The entries whose bundle is another one.
fn bundles(configuration: &Configuration, trusted: &Authorities) -> Option<Write> {
    let Configuration::Found { version, entries, .. } = configuration else { return None };
    let trusted: Vec<_> = trusted.all().cloned().collect();
    let other = |entry: &&Entry| entry.bundle.authorities != trusted;
    let entries = entries.iter().filter(other).map(|entry| (entry.index, entry.name.clone()));
    let entries: Vec<_> = entries.collect();
    let some = !entries.is_empty();
    some.then(|| Write::Bundle { version: version.clone(), entries, trusted })
}

/// Whether API servers trust what is presented.
fn ready(observed: &Observed<'_>, settings: &Settings) -> Result<(), String> {
    let Observed { memory, served, now, .. } = *observed;
    let Some(served) = served else { return Err("there is no certificate yet".to_owned()) };
    if served.until <= now.wall {
        return Err("our certificate has expired, and there is no authority to sign another".into());
    }
    let Some(live) = &memory.live else {
        return Err(format!("{} could not be read yet", configuration_of(settings)));
    };
    match live.entries {
        None => {
            return Err(format!(
                "there is no MutatingWebhookConfiguration {:?}: apply charts/manifests/webhook.yaml, \
                 or name another with --webhook-configuration",
                settings.configuration
            ));
        }
        Some(0) => {
            return Err(format!(
                "{} has no entry pods.aether.io or namespaces.aether.io: apply \
                 charts/manifests/webhook.yaml",
                configuration_of(settings)
            ));
        }
        Some(_) => {}
    }
    if !live.since.contains_key(&served.issuer) {
        return Err(format!(
            "the caBundle of {} does not hold the authority of our certificate: the leader writes \
             it there within seconds, if there is a leader and it may",
            configuration_of(settings)
        ));
    }
    let known = memory.good.iter().flat_map(Authorities::all);
    if let Some(issuer) = known.into_iter().find(|known| known.der == served.issuer)
        && !issuer.valid_at(now.wall)
    {
        return Err(format!("the authority {:?} of our certificate has expired", issuer.name));
    }
    let uncovered = live.hosts.iter().find(|host| !settings.names.contains(host));
    uncovered.map_or(Ok(()), |host| {
        Err(format!(
            "{} calls {host:?}, which our certificate is not for: correct --webhook-service or \
             --own-namespace, or add the name with --webhook-names",
            configuration_of(settings)
        ))
    })
}

/// What is wrong beside that.
fn findings(observed: &Observed<'_>, settings: &Settings) -> Vec<String> {
    let mut all = Vec::new();
    match observed.secret {
        Secret::Unknown(why) => all.push(format!("{} cannot be read: {why}", secret_of(settings))),
        Secret::Found { contents: Err(fault), .. } => all.push(format!(
            "{} is not as we write it: {fault}; the leader writes it anew",
            secret_of(settings)
        )),
        Secret::Absent | Secret::Found { .. } => {}
    }
    if let Configuration::Unknown(why) = observed.configuration {
        all.push(format!("{} cannot be read: {why}", configuration_of(settings)));
    }
    all
}

/// The Secret, in words.
pub(super) fn secret_of(settings: &Settings) -> String {
    format!("the Secret {}/{}", settings.namespace, settings.secret)
}

/// The configuration, in words.
pub(super) fn configuration_of(settings: &Settings) -> String {
    format!("the MutatingWebhookConfiguration {:?}", settings.configuration)
}

//! Asking the API server what we may do.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::Permission;
use crate::health::Part;

/// How long one question may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How often it is asked while something is missing, or nothing is known, and how often it is looked
/// whether our rules are other ones.
const SOON: Duration = Duration::from_secs(3);
/// How often it is asked while they are not: rules do not tell all where other authorizers than RBAC
/// have a say.
const LATER: Duration = Duration::from_mins(1);

/// What the API server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// These are missing.
    Missing(Vec<Permission>),
    /// It could not be asked.
    Unknown(String),
}

/// Asks again and again, and says what is missing.
#[derive(Clone)]
pub struct Reviewer {
    client: Client,
    needed: Vec<Permission>,
    health: Part,
    missing: Family<[(&'static str, &'static str); 3], Gauge>,
}

impl Reviewer {
    /// A reviewer of these permissions.
    pub fn new(client: Client, needed: Vec<Permission>, health: Part) -> Self {
        Self { client, needed, health, missing: Family::default() }
    }

    /// Adds the family to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let help =
            "1 for each permission to write that is missing now, by verb, API group and resource";
        registry.register("write_forbidden", help, self.missing.clone());
    }

    /// Asks for ever. Nothing waits for it: proxies are served without these permissions.
    pub async fn run(self) {
        self.health.ready();
        let mut before = Vec::new();
        loop {
            // Before the question: a change between the two is seen at the next look.
            let rules = self.rules().await;
            let pause = match self.review().await {
                Verdict::Missing(missing) => {
                    self.say(&missing, &before);
                    before = missing;
                    if before.is_empty() { LATER } else { SOON }
                }
                // That the API server is away is said by the source.
                Verdict::Unknown(_) => SOON,
            };
            let asked = Instant::now();
            loop {
                sleep(SOON).await;
                if asked.elapsed() >= pause || self.rules().await != rules {
                    break;
                }
            }
        }
    }

    /// Our rules in all the namespaces that permissions are about, in no form but that equal ones
    /// are equal: one small request for each, where the questions would be a dozen. `None` where they
    /// cannot be had.
    async fn rules(&self) -> Option<Vec<String>> {
        let namespaces = self.needed.iter().filter_map(|permission| permission.namespace.clone());
        let mut namespaces: BTreeSet<String> = namespaces.collect();
        if namespaces.is_empty() {
            // Rules for all namespaces hold in any of them.
            namespaces.insert("default".to_owned());
        }
        let reviews: Api<SelfSubjectRulesReview> = Api::all(self.client.clone());
        let mut all = Vec::new();
        for namespace in namespaces {
            let spec = SelfSubjectRulesReviewSpec { namespace: Some(namespace) };
            let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
            let params = PostParams::default();
            let answer = timeout(LIMIT, reviews.create(&params, &review)).await.ok()?.ok()?;
            all.extend(answer.status?.resource_rules.iter().map(|rule| format!("{rule:?}")));
        }
        all.sort_unstable();
        Some(all)
    }

    /// Asks for each permission.
    pub async fn review(&self) -> Verdict {
        let mut missing = Vec::new();
        for permission in &self.needed {
            match timeout(LIMIT, self.allowed(permission)).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => missing.push(permission.clone()),
                Ok(Err(error)) => return Verdict::Unknown(error.to_string()),
                Err(_) => return Verdict::Unknown(format!("no answer within {LIMIT:?}")),
            }
        }
        Verdict::Missing(missing)
    }

    async fn allowed(&self, permission: &Permission) -> kube::Result<bool> {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let attributes = ResourceAttributes {
            verb: Some(permission.verb.to_owned()),
            group: Some(permission.group.to_owned()),
            resource: Some(permission.resource.to_owned()),
            namespace: permission.namespace.clone(),
            name: permission.name.clone(),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Says what has changed.
    fn say(&self, missing: &[Permission], before: &[Permission]) {
        if missing == before {
            return;
        }
        self.missing.clear();
        for permission in missing {
            let Permission { verb, group, resource, .. } = *permission;
            let labels = [("verb", verb), ("group", group), ("resource", resource)];
            self.missing.get_or_create(&labels).set(1);
        }
        if missing.is_empty() {
            info!("all that is to be written may be written");
            self.health.ready();
            return;
        }
        for permission in missing.iter().filter(|permission| !before.contains(permission)) {
            warn!("we may not {permission}: grant it to our ServiceAccount");
        }
        let all: Vec<_> = missing.iter().map(ToString::to_string).collect();
        self.health
            .degraded(format!("we may not {}: grant it to our ServiceAccount", all.join("; nor ")));
    }
}

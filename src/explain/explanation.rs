//! The answer: steps, the paths that a connection may take, and a sentence.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::Speaks;

/// What a step is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// The pod.
    Pod,
    /// How its name is resolved.
    Name,
    /// The Service that is meant.
    Service,
    /// Whether the connection reaches the proxy.
    Redirection,
    /// Whether the proxy looks at its first bytes.
    Inspection,
    /// The filter chain.
    Chain,
    /// The route.
    Route,
    /// The cluster.
    Cluster,
    /// The endpoints.
    Endpoints,
}

impl Topic {
    /// As it stands before a step.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Name => "name",
            Self::Service => "service",
            Self::Redirection => "redirection",
            Self::Inspection => "inspection",
            Self::Chain => "chain",
            Self::Route => "route",
            Self::Cluster => "cluster",
            Self::Endpoints => "endpoints",
        }
    }
}

/// What decided a step: an object, its field, the value of that, and the rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Because {
    /// The object: a Kubernetes object, a resource of the proxy, or an option of ours.
    pub object: String,
    /// The field; empty where it is the whole object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// The value of the field; empty where there is none to show.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The rule, in words.
    pub rule: String,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it is about.
    pub topic: Topic,
    /// What happens there. One sentence, no full stop.
    pub says: String,
    /// What decided it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Because>,
    /// What else there is to know, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Step {
    /// A step that nothing has been said of but what happens.
    pub(super) fn new(topic: Topic, says: impl Into<String>) -> Self {
        Self { topic, says: says.into(), because: Vec::new(), notes: Vec::new() }
    }

    /// With something that decided it.
    #[expect(clippy::needless_pass_by_value, reason = "objects are often named where it is called")]
    pub(super) fn because(
        mut self,
        object: impl ToString,
        field: impl Into<String>,
        value: impl Into<String>,
        rule: impl Into<String>,
    ) -> Self {
        self.because.push(Because {
            object: object.to_string(),
            field: field.into(),
            value: value.into(),
            rule: rule.into(),
        });
        self
    }

    /// With a line more.
    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// An endpoint that a connection may be sent to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// How near it is, 0 the nearest: a farther one is used where no nearer one is left.
    pub priority: u32,
    /// Where it is.
    pub address: SocketAddr,
    /// Its share among those of its priority.
    pub weight: u32,
    /// Its region and zone, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locality: Option<String>,
    /// The pod, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
}

/// Where a connection ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Outcome {
    /// Past the proxy, to where it was going: it is not captured.
    NotCaptured {
        /// Why, as the end of a sentence.
        why: String,
    },
    /// To a mesh service.
    Service {
        /// Its key.
        service: String,
        /// The port of the Service.
        port: u16,
        /// The proxy's cluster.
        cluster: String,
        /// Whom it may be sent to, nearest first; empty: no endpoint can take it, and the client
        /// gets what `answer` says.
        endpoints: Vec<Target>,
        /// What the client gets where there is no endpoint.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// Nowhere: its name does not resolve, so there is nothing to connect to.
    Unresolved {
        /// Why, as the end of a sentence.
        why: String,
    },
    /// Through the proxy to where it was going.
    Passthrough {
        /// The address, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// The proxy answers itself.
    Answered {
        /// The status.
        status: u32,
        /// The body.
        body: String,
    },
    /// The proxy closes it.
    Closed {
        /// Why, as the end of a sentence.
        why: String,
    },
}

/// What becomes of a connection that speaks one way or another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// What it speaks.
    pub speaks: Vec<Speaks>,
    /// The steps from the listener on.
    pub steps: Vec<Step>,
    /// Where it ends.
    pub outcome: Outcome,
}

/// A finding on an object that has to do with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The object.
    pub object: String,
    /// The finding, as `check` prints it.
    pub finding: String,
    /// Since when this process knows of it, where it has been looking for long enough to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The pod that was asked about.
    pub pod: String,
    /// Where its connection goes, with the port.
    pub destination: String,
    /// The steps that all connections share.
    pub steps: Vec<Step>,
    /// What becomes of them then.
    pub paths: Vec<Path>,
    /// What is wrong with the objects that have to do with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Found>,
    /// All of it in a sentence or two.
    pub verdict: String,
}

impl Serialize for Speaks {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Speaks {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

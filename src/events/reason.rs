//! What events say, and the fixed list of their reasons.

use crate::model::{Finding, ObjectRef, PodKey, Reason, Severity};

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Something is left out.
    Warning,
    /// It works, but perhaps not as its author thinks.
    Normal,
}

impl Kind {
    /// As the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "Warning",
            Self::Normal => "Normal",
        }
    }
}

/// A reason of an event, with the action that it stood in the way of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventReason {
    /// `reason` of the event: at most 128 characters.
    pub name: &'static str,
    /// `action` of the event: at most 128 characters.
    pub action: &'static str,
}

/// What was to be done with the object.
const CAPTURE: &str = "Capture";
const GENERATE: &str = "GenerateService";
const CONFIGURE: &str = "ConfigureProxy";

impl EventReason {
    /// A proxy refused what it was sent.
    pub const REFUSED: Self = Self { name: "RefusedByProxy", action: CONFIGURE };

    /// Every reason there is.
    pub const ALL: [Self; 13] = [
        Self { name: "UnreadableObject", action: CAPTURE },
        Self { name: "InvalidValue", action: CAPTURE },
        Self { name: "ConflictingKey", action: CAPTURE },
        Self { name: "LostShortName", action: CAPTURE },
        Self { name: "ConflictingAddress", action: CAPTURE },
        Self { name: "NotServable", action: CAPTURE },
        Self { name: "NotCaptured", action: CAPTURE },
        Self { name: "NotSupported", action: CAPTURE },
        Self { name: "Suspicious", action: CAPTURE },
        Self { name: "ConflictingPods", action: GENERATE },
        Self { name: "NotGenerated", action: GENERATE },
        Self { name: "HeldBack", action: CONFIGURE },
        Self::REFUSED,
    ];

    /// The reason of a finding; `None` for those that there are no events about: what stands in
    /// files is about no object of a cluster, and what `check` alone looks for is told by it.
    pub(super) fn of(reason: Reason) -> Option<Self> {
        match reason {
            Reason::UnreadableFile | Reason::DuplicateObject | Reason::Unmanaged => None,
            told => Self::ALL.into_iter().find(|reason| reason.name == told.as_str()),
        }
    }
}

/// What is to be told about an object: one event, however often it is told.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    /// The object.
    pub object: ObjectRef,
    /// Why.
    pub reason: EventReason,
    /// The type.
    pub kind: Kind,
    /// What there is to say, of any length.
    pub note: String,
}

impl Message {
    /// What is to be told of a finding, if anything.
    pub fn of(finding: &Finding) -> Option<Self> {
        let reason = EventReason::of(finding.reason)?;
        let Finding { field, message, way_out, .. } = finding;
        let colon = if field.is_empty() { "" } else { ": " };
        Some(Self {
            object: finding.object.clone(),
            reason,
            kind: match finding.severity {
                Severity::Problem => Kind::Warning,
                Severity::Warning => Kind::Normal,
            },
            note: format!("{field}{colon}{message}; {way_out}"),
        })
    }

    /// That the proxy of a pod refused resources of a kind, such as `clusters`.
    pub fn refused(pod: &PodKey, kind: &str, words: &str) -> Self {
        let words: Vec<_> = words.split_whitespace().collect();
        Self {
            object: ObjectRef::new("Pod", pod.namespace.clone(), pod.name.clone()),
            reason: EventReason::REFUSED,
            kind: Kind::Warning,
            note: format!(
                "its proxy refused {kind} and goes on with those it had: {}",
                words.join(" ")
            ),
        }
    }
}

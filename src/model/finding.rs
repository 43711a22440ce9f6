//! Findings: what is wrong with an object, in words that a user can act on.

use std::fmt;
use std::sync::Arc;

/// An object, as a user would name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// The kind, as in a manifest.
    pub kind: &'static str,
    /// The namespace; empty for an object of the cluster.
    pub namespace: Arc<str>,
    /// The name; empty where it could not be read.
    pub name: Arc<str>,
}

impl ObjectRef {
    /// A reference to an object.
    pub fn new(
        kind: &'static str,
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// How much a finding costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Something is left out: an object, a claim, a name.
    Problem,
    /// It works, but perhaps not as its author thinks.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
        })
    }
}

/// The kinds of findings: a bounded set, fit for a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A file that cannot be read or parsed.
    UnreadableFile,
    /// An object that cannot be read.
    UnreadableObject,
    /// An object that stands in two files.
    DuplicateObject,
    /// An annotation or field with a value that cannot be used.
    InvalidValue,
    /// Two Services claim one key.
    ConflictingKey,
    /// A short name that went to another service.
    LostShortName,
    /// Two Services have one ClusterIP.
    ConflictingAddress,
    /// Something that would make Envoy refuse the update.
    NotServable,
    /// A Service that is not captured, or not as a whole, because of what it is.
    NotCaptured,
    /// A setting that is not honoured.
    NotSupported,
    /// It is served, but cannot work as it stands.
    Suspicious,
    /// A pod that is not in the mesh though its namespace is.
    Unmanaged,
    /// Pods of one ServiceAccount that do not agree where or how they serve.
    ConflictingPods,
    /// A mesh Service that could not be generated for a ServiceAccount.
    NotGenerated,
    /// What came of it was refused by a proxy that was asked first, and is held back.
    HeldBack,
}

impl Reason {
    /// The reason's name in logs, metrics and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnreadableFile => "UnreadableFile",
            Self::UnreadableObject => "UnreadableObject",
            Self::DuplicateObject => "DuplicateObject",
            Self::InvalidValue => "InvalidValue",
            Self::ConflictingKey => "ConflictingKey",
            Self::LostShortName => "LostShortName",
            Self::ConflictingAddress => "ConflictingAddress",
            Self::NotServable => "NotServable",
            Self::NotCaptured => "NotCaptured",
            Self::NotSupported => "NotSupported",
            Self::Suspicious => "Suspicious",
            Self::Unmanaged => "Unmanaged",
            Self::ConflictingPods => "ConflictingPods",
            Self::NotGenerated => "NotGenerated",
            Self::HeldBack => "HeldBack",
        }
    }
}

/// One thing that is wrong, with the object, the field, the value and the way out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Finding {
    /// The object at fault.
    pub object: ObjectRef,
    /// How much it costs.
    pub severity: Severity,
    /// The kind of finding.
    pub reason: Reason,
    /// Where the object came from (file and document), where that is known.
    pub origin: Option<Arc<str>>,
    /// The field at fault, as a path in the manifest; empty where it is the whole object.
    pub field: String,
    /// What is wrong, with the value, and what follows from it. One sentence, no full stop.
    pub message: String,
    /// What to do about it. One sentence, no full stop.
    pub way_out: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.severity, self.reason.as_str(), self.object)?;
        if let Some(origin) = &self.origin {
            write!(f, " ({origin})")?;
        }
        if !self.field.is_empty() {
            write!(f, ", {}", self.field)?;
        }
        write!(f, ": {}; {}", self.message, self.way_out)
    }
}

/// A value for a message: in quotes, control characters escaped, cut at 80 characters.
pub fn quoted(value: &str) -> String {
    const MOST: usize = 80;
    if value.chars().count() <= MOST {
        return format!("{value:?}");
    }
    let head: String = value.chars().take(MOST).collect();
    format!("{head:?}… ({} characters)", value.chars().count())
}

//! What a client has of a resource where that differs from what it should have.

use super::{Kind, Resource, Version};

/// What the client has under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Has {
    /// Nothing: it was never sent on this stream, and the client did not say that it has it.
    Nothing,
    /// The resource of this version.
    Version(Version),
    /// Something or nothing: it refused the last form, or named a version that is not ours.
    Unsure,
}

/// Why the client gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It differs from what the client has.
    Differs,
    /// The client asked for it, or needs it again: it is sent even if the client has it, absence
    /// is told, and it waits for no answer to an earlier response.
    Asked,
    /// The client refused it; it goes again when the content of its type changes (statement 6).
    Refused,
    /// A virtual host whose route configuration is not there yet: Envoy would drop it.
    Parked,
    /// A virtual host that is gone along with its route configuration, which the client goes on
    /// naming: it goes once nothing there uses that configuration any more.
    Leaving,
}

/// An entry of the list of differences between client and view.
#[derive(Debug, Clone)]
pub(super) struct Owed {
    pub(super) has: Has,
    /// What it should have; `None`: nothing.
    pub(super) now: Option<Resource>,
    pub(super) why: Why,
}

impl Owed {
    /// Whether nothing is to be done after all.
    pub(super) fn settled(&self) -> bool {
        let same = match (&self.has, &self.now) {
            (Has::Nothing, None) => true,
            (Has::Version(has), Some(now)) => *has == now.version(),
            _ => false,
        };
        matches!(self.why, Why::Differs | Why::Parked | Why::Leaving) && same
    }

    /// Whether it takes something away that the client did not just ask for.
    pub(super) fn removal(&self) -> bool {
        self.why == Why::Differs && self.now.is_none() && self.has != Has::Nothing
    }

    /// Whether it is to be sent, when removals may be or not. Absence is an answer that is given at
    /// once, but for endpoints: those of a cluster that is kept are gone when it is.
    pub(super) fn due(&self, kind: Kind, removals: bool) -> bool {
        match self.why {
            Why::Asked => removals || kind != Kind::Endpoints || self.now.is_some(),
            Why::Differs => removals || !self.removal(),
            Why::Refused | Why::Parked | Why::Leaving => false,
        }
    }

    /// Whether the content changed since the client got it, or it never did by itself: then what
    /// was refused goes again with it.
    pub(super) fn changed(&self) -> bool {
        match (self.why, self.has, &self.now) {
            (Why::Differs, ..) => true,
            (Why::Asked, Has::Version(has), now) => {
                now.as_ref().map(Resource::version) != Some(has)
            }
            _ => false,
        }
    }

    /// Whether the client lacks something that others may already name.
    pub(super) fn lacking(&self) -> bool {
        let sent = matches!(self.why, Why::Asked | Why::Differs);
        sent && self.now.is_some() && !matches!(self.has, Has::Version(_))
    }
}

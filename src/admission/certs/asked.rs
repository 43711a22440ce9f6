//! An authority changed because somebody asked for it: its key may be in other hands.
//!
//! Whoever asks gives the annotation [`ROTATE`] of the Secret a value that it did not have. Then
//! everything that the Secret held is given up: a next authority is made, even where another waits
//! already, since its key lay beside the others. The overlap is as always, or no API server would
//! know it. But what was given up is not trusted for as long as certificates live: only until every
//! replica that reaches the API server presents a certificate of the new one.

use std::sync::Arc;

use super::authority::{Authorities, Now, Unix};
use super::rotation::{self, Contents, Place, Step};
use super::settings::Settings;

/// The annotation of the Secret: each new value asks once.
pub const ROTATE: &str = "aether.io/rotate";

/// How far it is with what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rotation {
    /// The next authority was made for this value, and does not sign yet.
    pub begun: Option<Arc<str>>,
    /// The one that signs was the last that was made for a value, this one.
    pub done: Option<Arc<str>>,
}

impl Rotation {
    /// What is asked for and not begun.
    pub(super) fn due(&self, asked: Option<&Arc<str>>) -> Option<Arc<str>> {
        let known = [self.begun.as_ref(), self.done.as_ref()];
        asked.filter(|asked| !known.contains(&Some(*asked))).cloned()
    }
}

/// Begins it. Nothing goes sooner for that: replicas need what they have until the new one signs.
pub(super) fn begin(
    mut authorities: Authorities,
    asked: Arc<str>,
    settings: &Settings,
    now: Now,
) -> Contents {
    if let Some(next) = authorities.next.take() {
        authorities.retired.push(rotation::retire(next.authority, settings, now.wall));
    }
    authorities.rotation.begun = Some(asked);
    Contents { authorities, fresh: Some(Place::Next), step: Step::Rotate }
}

/// The next one signs. Where it was asked for, what was given up goes soon.
pub(super) fn promoted(authorities: &mut Authorities, settings: &Settings, now: Now) {
    if let Some(asked) = authorities.rotation.begun.take() {
        authorities.rotation.done = Some(asked);
        hasten(authorities, settings, now);
    }
}

/// Until when an authority is trusted that nobody should present, at the least and at the most:
/// one overlap for replicas that have seen the new one late, one for API servers that learn of it
/// late, and one to spare.
pub(super) fn soon(settings: &Settings, now: Now) -> Unix {
    now.wall.saturating_add(settings.overlap.as_secs().saturating_mul(3))
}

/// What is retired is trusted for no longer than that.
fn hasten(authorities: &mut Authorities, settings: &Settings, now: Now) {
    let soon = soon(settings, now);
    for retired in &mut authorities.retired {
        retired.until = retired.until.min(soon);
    }
}

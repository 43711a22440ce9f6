//! What the Secret is to hold next.

use super::asked;
use super::authority::{Authorities, Authority, Now, Retired, Unix};
use super::bundle::Configuration;
use super::memory::Memory;
use super::settings::Settings;
use super::x509;
use crate::leader::Boot;

/// What the Secret is to hold. Keys are made by whoever writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// All but what is new.
    pub authorities: Authorities,
    /// Where a new authority goes.
    pub fresh: Option<Place>,
    /// What is done by it.
    pub step: Step,
}

/// A place for a new authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It signs at once: nobody relies on another.
    Signing,
    /// It waits for its overlap.
    Next,
}

/// What a change of the Secret does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// There was none, and none is remembered.
    Begin,
    /// It is put back as this process remembers it.
    Restore,
    /// Authorities that are trusted and not known are taken up.
    Adopt,
    /// A next authority is begun.
    Prepare,
    /// The next one signs from now on, the old one is retired.
    Promote,
    /// What is not trusted any more goes.
    Forget,
    /// A next authority is begun since somebody asked for it; all others are given up.
    Rotate,
}

impl Step {
    /// The word for it in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Restore => "restore",
            Self::Adopt => "adopt",
            Self::Prepare => "prepare",
            Self::Promote => "promote",
            Self::Forget => "forget",
            Self::Rotate => "rotate",
        }
    }
}

/// What to put where there is no Secret, or none that can be read.
pub(super) fn anew(
    memory: &Memory,
    configuration: &Configuration,
    settings: &Settings,
    now: Now,
) -> Contents {
    let mut authorities = memory.good.clone().unwrap_or_default();
    // Whoever remembers an earlier day may find trusted what is over for him and others present.
    let soon = asked::soon(settings, now);
    for retired in &mut authorities.retired {
        if configuration.trusts(&retired.authority.der) {
            retired.until = retired.until.max(soon);
        }
    }
    adopt(&mut authorities, configuration, settings, now);
    if authorities.all().next().is_none() {
        // Whatever was asked for, nobody has anything older.
        authorities.rotation.done.clone_from(&memory.asked);
        return Contents { authorities, fresh: Some(Place::Signing), step: Step::Begin };
    }
    // It goes with a Secret that is deleted, so it is done at once.
    if let Some(asked) = authorities.rotation.due(memory.asked.as_ref()) {
        return asked::begin(authorities, asked, settings, now);
    }
    if memory.good.is_some() {
        return Contents { authorities, fresh: None, step: Step::Restore };
    }
    Contents { authorities, fresh: Some(Place::Next), step: Step::Begin }
}

/// Takes up the valid authorities of ours that are trusted and not known: whoever made them was
/// overtaken, or the Secret is one of an earlier day. Replicas may hold certificates of theirs, so
/// they are retired and not thrown out. Whether there were any.
fn adopt(
    authorities: &mut Authorities,
    configuration: &Configuration,
    settings: &Settings,
    now: Now,
) -> bool {
    let Configuration::Found { entries, .. } = configuration else { return false };
    let before = authorities.retired.len();
    for known in entries.iter().flat_map(|entry| &entry.bundle.authorities) {
        if x509::is_ours(known) && known.valid_at(now.wall) && !authorities.knows(&known.der) {
            authorities.retired.push(retire(known.clone(), settings, now.wall));
        }
    }
    authorities.retired.len() > before
}

/// From now on it signs nothing more. What it signed lives for a certificate's life at most, and not
/// longer than the authority itself.
pub(super) fn retire(authority: Authority, settings: &Settings, wall: Unix) -> Retired {
    let life = settings.certificate.as_secs();
    let until = wall.saturating_add(life).min(authority.until).saturating_add(settings.grace());
    Retired { authority, until }
}

/// What is to be done about an authority that signs, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// Write this.
    Now(Box<Contents>),
    /// Nothing before this time.
    At(Boot),
}

/// The next step of a Secret that is in order.
pub(super) fn next(
    authorities: &Authorities,
    memory: &Memory,
    configuration: &Configuration,
    settings: &Settings,
    now: Now,
) -> Due {
    let write = |authorities: Authorities, fresh, step| {
        Due::Now(Box::new(Contents { authorities, fresh, step }))
    };
    let mut more = authorities.clone();
    if adopt(&mut more, configuration, settings, now) {
        return write(more, None, Step::Adopt);
    }
    if let Some(asked) = authorities.rotation.due(memory.asked.as_ref()) {
        return Due::Now(Box::new(asked::begin(authorities.clone(), asked, settings, now)));
    }
    let mut at = Boot::NEVER;
    match (&authorities.signing, &authorities.next) {
        // It has missed its time, and has signed nothing.
        (_, Some(next)) if !next.authority.valid_at(now.wall) => {
            let kept = Authorities { next: None, ..authorities.clone() };
            return write(kept, Some(Place::Next), Step::Prepare);
        }
        (_, Some(next)) => match memory.live_since(&next.authority.der) {
            Some(since) if since + settings.overlap <= now.boot => {
                let mut promoted = authorities.clone();
                let old = std::mem::replace(&mut promoted.signing, promoted.next.take());
                let old = old.map(|pair| retire(pair.authority, settings, now.wall));
                promoted.retired.extend(old);
                asked::promoted(&mut promoted, settings, now);
                return write(promoted, None, Step::Promote);
            }
            Some(since) => at = since + settings.overlap,
            None => {}
        },
        (Some(signing), None) => {
            let due = renewal(&signing.authority, settings);
            if due <= now.wall || !signing.authority.valid_at(now.wall) {
                return write(authorities.clone(), Some(Place::Next), Step::Prepare);
            }
            at = now.boot_at(due);
        }
        // No Secret reads so.
        (None, None) => return write(authorities.clone(), Some(Place::Signing), Step::Begin),
    }
    let over = |retired: &Retired| memory.over_at(retired, settings, now);
    // What goes leaves the bundle first: what stands there and not here is taken up again.
    let gone = |retired: &Retired| {
        over(retired) <= now.boot && !configuration.trusts(&retired.authority.der)
    };
    if authorities.retired.iter().any(gone) {
        let mut kept = authorities.clone();
        kept.retired.retain(|retired| !gone(retired));
        return write(kept, None, Step::Forget);
    }
    let later = authorities.retired.iter().map(over).filter(|over| *over > now.boot);
    Due::At(later.fold(at, Boot::min))
}

/// What the bundle is to hold: all that the Secret does, but for those whose time is over.
pub(super) fn trusted(
    authorities: &Authorities,
    memory: &Memory,
    settings: &Settings,
    now: Now,
) -> Authorities {
    let mut trusted = authorities.clone();
    trusted.retired.retain(|retired| memory.over_at(retired, settings, now) > now.boot);
    trusted
}

/// When the next authority is begun: when a third of a life is left.
fn renewal(authority: &Authority, settings: &Settings) -> Unix {
    authority.until.saturating_sub(settings.authority.as_secs() / 3)
}

impl Now {
    /// When it will be this time of the calendar, as far as is known now.
    pub(super) fn boot_at(&self, wall: Unix) -> Boot {
        self.boot + std::time::Duration::from_secs(wall.saturating_sub(self.wall))
    }
}

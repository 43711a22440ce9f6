//! Which certificate a replica presents.

use super::authority::{Der, Now, Pair, Unix};
use super::memory::Memory;
use super::secret::Secret;
use super::settings::Settings;
use crate::leader::Boot;

/// The certificate that is presented, as far as a decision needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The authority that signed it.
    pub issuer: Der,
    /// When it was signed.
    pub signed: Unix,
    /// Until when it is valid.
    pub until: Unix,
}

impl Served {
    /// When it is to be renewed: at two thirds of its life.
    pub fn renewal(&self) -> Unix {
        self.signed + self.until.saturating_sub(self.signed) / 3 * 2
    }
}

/// What to present from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serve {
    /// What is presented already, if anything, until this time.
    Keep(Boot),
    /// A new certificate of this authority.
    Sign(Pair),
}

/// Decides it. A certificate that works is never given up for one that might not.
pub(super) fn serve(
    served: Option<&Served>,
    secret: &Secret,
    memory: &Memory,
    settings: &Settings,
    now: Now,
) -> Serve {
    let Some(known) = &memory.good else { return Serve::Keep(Boot::NEVER) };
    let live = |pair: &&Pair| memory.is_live(&pair.authority.der);
    let valid = |pair: &&Pair| pair.authority.valid_at(now.wall);
    let signing = known.signing.as_ref().filter(valid);
    let working = served.filter(|served| now.wall < served.until);
    let Some(working) = working else {
        // Whatever is trusted is better than nothing, and what may be trusted soon too.
        let can = || signing.into_iter().chain(known.next.as_ref().filter(valid));
        let chosen = can().find(live).or_else(|| can().next());
        return chosen.map_or(Serve::Keep(Boot::NEVER), |pair| Serve::Sign(pair.clone()));
    };
    let issuer = &working.issuer;
    let renewal = now.boot_at(working.renewal());
    let expiry = now.boot_at(working.until);
    // An authority that is retired signs nothing, so it must be certain that it is not: what is
    // remembered does for the time when nothing else is left.
    let certain = matches!(secret, Secret::Found { contents: Ok(_), .. });
    match signing {
        Some(pair) if pair.authority.der == *issuer => {
            let longer = pair.authority.until > working.until;
            if renewal <= now.boot && certain && longer {
                return Serve::Sign(pair.clone());
            }
        }
        // What is trusted is kept until every API server must have seen the other one, too. The
        // leader has waited for that already; this holds whatever became of the Secret.
        Some(pair) if memory.is_live(issuer) => {
            let since = memory.live_since(&pair.authority.der);
            match since.map(|since| since + settings.overlap) {
                Some(seen) if seen <= now.boot => return Serve::Sign(pair.clone()),
                Some(seen) => return Serve::Keep(seen.min(expiry)),
                None => {}
            }
        }
        // What is not trusted, but will be again: the leader puts it back.
        Some(pair) if live(&pair) || !known.knows(issuer) => return Serve::Sign(pair.clone()),
        _ => {}
    }
    Serve::Keep(if renewal > now.boot { renewal } else { expiry })
}

//! Which certificate a replica presents.

use super::authority::{Authorities, Der, Now, Pair, Retired, Unix};
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
        self.signed + self.life() / 3 * 2
    }

    /// When it is renewed by what is remembered, where nobody says how things are now: at three
    /// quarters of its life.
    pub fn late(&self) -> Unix {
        self.signed + self.life() / 4 * 3
    }

    fn life(&self) -> u64 {
        self.until.saturating_sub(self.signed)
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
    let choice = Choice { known, memory, settings, now };
    let Some(working) = served.filter(|served| now.wall < served.until) else {
        let chosen = choice.first();
        return chosen.map_or(Serve::Keep(Boot::NEVER), |pair| Serve::Sign(pair.clone()));
    };
    // An authority that is retired signs nothing, and whether it is shows the Secret alone. What is
    // remembered does where that is silent for long.
    let certain = matches!(secret, Secret::Found { contents: Ok(_), .. });
    let due = now.boot_at(if certain { working.renewal() } else { working.late() });
    let chosen = choice.moved(working).or_else(|| {
        let renewed = choice.renewed(working);
        renewed.filter(|_| due <= now.boot)
    });
    if let Some(pair) = chosen {
        return Serve::Sign(pair.clone());
    }
    let expiry = now.boot_at(working.until);
    // What it can move to, and once it is due what else it can be renewed by.
    let signing = choice.signing().filter(|pair| pair.authority.der != working.issuer);
    let others = choice.pairs().filter(|_| due <= now.boot);
    let seen = signing.into_iter().chain(others).filter_map(|pair| choice.seen_at(pair));
    let later = seen.chain([due]).filter(|at| *at > now.boot);
    Serve::Keep(later.fold(expiry, Boot::min))
}

/// What a choice is made of.
struct Choice<'a> {
    known: &'a Authorities,
    memory: &'a Memory,
    settings: &'a Settings,
    now: Now,
}

impl<'a> Choice<'a> {
    fn signing(&self) -> Option<&'a Pair> {
        self.known.signing.as_ref().filter(|pair| pair.authority.valid_at(self.now.wall))
    }

    /// All that could sign, the one that should first, and last what only this process has.
    fn pairs(&self) -> impl Iterator<Item = &'a Pair> + use<'a> {
        let wall = self.now.wall;
        let lost = self.memory.lost.iter().filter(|pair| self.live(pair));
        let lost: Vec<_> = lost.collect();
        let pairs = self.known.signing.iter().chain(&self.known.next).chain(lost);
        pairs.filter(move |pair| pair.authority.valid_at(wall))
    }

    fn live(&self, pair: &Pair) -> bool {
        self.memory.is_live(&pair.authority.der)
    }

    /// When every API server must have seen it.
    fn seen_at(&self, pair: &Pair) -> Option<Boot> {
        let since = self.memory.live_since(&pair.authority.der);
        since.map(|since| since + self.settings.overlap)
    }

    fn seen(&self, pair: &Pair) -> bool {
        self.seen_at(pair).is_some_and(|at| at <= self.now.boot)
    }

    /// Whether an authority was given up for the one that signs, and is not trusted for long. While
    /// one that was asked for is awaited, it was given up for that.
    fn leaves(&self, der: &Der) -> bool {
        let soon = self.now.wall + 4 * self.settings.overlap.as_secs();
        let rotation = &self.known.rotation;
        let mut retired = self.known.retired.iter();
        let given_up = |known: &Retired| known.authority.der == *der && known.until <= soon;
        rotation.begun.is_none() && retired.any(given_up)
    }

    /// What to begin with: whatever is trusted is better than nothing, and what may be trusted soon
    /// too.
    fn first(&self) -> Option<&'a Pair> {
        self.pairs().find(|pair| self.live(pair)).or_else(|| self.pairs().next())
    }

    /// The authority that signs now, where the certificate is another's and can be given up.
    fn moved(&self, working: &Served) -> Option<&'a Pair> {
        let issuer = &working.issuer;
        let signing = self.signing().filter(|pair| pair.authority.der != *issuer)?;
        let move_on = if self.memory.is_live(issuer) {
            // What is trusted is kept until every API server must have seen the other one, too. The
            // leader has waited for that already; this holds whatever became of the Secret. One
            // that ends sooner than what was signed ahead of it by the next one is no gain.
            let seen = self.seen(signing) || self.live(signing) && self.leaves(issuer);
            seen && signing.authority.until > working.until
        } else {
            // What is known and not trusted will be again: the leader puts it back.
            self.live(signing) || !self.known.knows(issuer)
        };
        move_on.then_some(signing)
    }

    /// What the certificate can be renewed by: its own authority, as long as it is trusted; another
    /// one that every API server must have seen; and its own all the same, which makes nothing
    /// worse.
    fn renewed(&self, working: &Served) -> Option<&'a Pair> {
        let longer = |pair: &&Pair| pair.authority.until > working.until;
        let own = |pair: &&Pair| pair.authority.der == working.issuer;
        let all = || self.pairs().filter(longer);
        let trusted = all().find(|pair| own(pair) && self.live(pair));
        trusted
            .or_else(|| all().find(|pair| !own(pair) && self.seen(pair)))
            .or_else(|| all().find(own))
    }
}

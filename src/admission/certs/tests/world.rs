//! A cluster of a few replicas, with time, faults and other hands.

mod time;

use std::sync::Arc;

use super::*;
use crate::admission::certs::serve::{Serve, Served};

/// One process.
#[derive(Debug, Default)]
pub struct Replica {
    pub memory: Memory,
    pub served: Option<Served>,
    /// How far its clock is ahead, in seconds.
    pub skew: i64,
    /// It reaches no API server.
    pub cut_off: bool,
    /// Since when every API server trusts what it presents.
    pub trusted: bool,
    pub ready: bool,
    /// When it looks again by itself.
    pub wakes: u64,
    /// When it was last told how things are: the Secret and the bundle, both as they should be.
    pub told: u64,
}

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Stored,
    Lost,
    /// It arrives so many seconds later, if what it replaces is still there.
    Late(u64),
}

pub struct World {
    pub settings: Settings,
    pub seconds: u64,
    pub secret: Secret,
    pub configuration: Configuration,
    /// Every bundle there was, and from when on.
    pub bundles: Vec<(u64, BTreeSet<Der>)>,
    pub replicas: Vec<Replica>,
    pub leader: Option<usize>,
    /// Since when nobody leads who reaches the API server.
    pub leaderless: Option<u64>,
    /// When everybody was cut off, from and to.
    pub helpless: Vec<(u64, u64)>,
    /// What the Secret's annotation asks for.
    pub asked: Option<Arc<str>>,
    /// When that was last changed.
    pub given_up: Option<u64>,
    /// When the Secret was last brought back from another day.
    pub brought_back: Option<u64>,
    pub late: Vec<(u64, Write, u64)>,
    pub backups: Vec<Authorities>,
    pub authorities: Vec<Authority>,
    pub promoted: usize,
    version: u64,
}

impl World {
    pub fn new(replicas: usize) -> Self {
        Self {
            settings: settings(),
            seconds: 0,
            secret: Secret::Absent,
            configuration: trusting(1, &[]),
            bundles: vec![(0, BTreeSet::new())],
            replicas: (0..replicas).map(|_| Replica::default()).collect(),
            leader: Some(0),
            leaderless: None,
            helpless: Vec::new(),
            asked: None,
            given_up: None,
            brought_back: None,
            late: Vec::new(),
            backups: Vec::new(),
            authorities: Vec::new(),
            promoted: 0,
            version: 1,
        }
    }

    fn wall(&self, skew: i64) -> Unix {
        (BEGIN + self.seconds).checked_add_signed(skew).unwrap()
    }

    /// One look of a replica: it reads, decides, presents, and begins to write.
    pub fn round(&mut self, index: usize, fate: Fate) -> Plan {
        let skew = self.replicas[index].skew;
        let now = Now { wall: self.wall(skew), boot: Boot(Duration::from_secs(self.seconds)) };
        let replica = &mut self.replicas[index];
        let away = || "no answer".to_owned();
        let (secret, configuration) = if replica.cut_off {
            (Secret::Unknown(away()), Configuration::Unknown(away()))
        } else {
            if matches!(&self.secret, Secret::Found { contents: Ok(_), .. }) {
                replica.told = self.seconds;
            }
            (self.secret.clone(), self.configuration.clone())
        };
        replica.memory.observe(&secret, &configuration, now.boot);
        let leads = self.leader == Some(index);
        let settings = self.settings.clone();
        let decide = |replica: &Replica| {
            let observed = Observed {
                secret: &secret,
                configuration: &configuration,
                memory: &replica.memory,
                served: replica.served.as_ref(),
                leader: leads,
                now,
            };
            plan(&observed, &settings)
        };
        let mut plan = decide(replica);
        if let Serve::Sign(pair) = &plan.serve {
            let until = (now.wall + self.settings.certificate.as_secs()).min(pair.authority.until);
            let issuer = pair.authority.der.clone();
            let better = self.better_than(&issuer).filter(|_| !self.in_the_dark(index));
            assert!(better.is_none(), "{index} signs with what is not trusted, and {better:?} is");
            let replica = &mut self.replicas[index];
            replica.served = Some(Served { issuer, signed: now.wall, until });
            let again = decide(replica);
            assert!(matches!(again.serve, Serve::Keep(_)), "signing settles it: {again:?}");
            plan = again;
        }
        self.replicas[index].ready = plan.ready.is_ok();
        self.replicas[index].wakes =
            plan.wake_at.0.as_secs().clamp(self.seconds + 1, self.seconds + 60);
        if let Some(write) = plan.write.clone() {
            match fate {
                Fate::Stored => {
                    self.store(write, now.wall);
                }
                Fate::Lost => {}
                Fate::Late(after) => self.late.push((self.seconds + after, write, now.wall)),
            }
        }
        plan
    }

    /// An authority whose key the Secret holds and that all API servers trust, for longer than
    /// clocks are apart, where this one is not such.
    fn better_than(&self, issuer: &Der) -> Option<Der> {
        let Secret::Found { contents: Ok(known), .. } = &self.secret else { return None };
        if self.all_trust(issuer) {
            return None;
        }
        let pairs = known.signing.iter().chain(&known.next).map(|pair| &pair.authority);
        let lives = |known: &&Authority| known.valid_at(self.wall(100));
        pairs.filter(lives).map(|known| known.der.clone()).find(|der| self.all_trust(der))
    }

    /// Whether every API server that is no more behind than the overlap trusts this authority.
    pub fn all_trust(&self, der: &Der) -> bool {
        let oldest = self.seconds.saturating_sub(self.settings.overlap.as_secs());
        let views = self.bundles.iter().enumerate().filter(|(index, _)| {
            let replaced = self.bundles.get(index + 1).map_or(u64::MAX, |(from, _)| *from);
            replaced > oldest
        });
        let wall = self.wall(0);
        let valid = self.authorities.iter().any(|known| known.der == *der && known.valid_at(wall));
        valid && views.into_iter().all(|(_, (_, bundle))| bundle.contains(der))
    }

    /// The API server takes a write, or does not.
    fn store(&mut self, write: Write, wall: Unix) -> bool {
        let current = match &self.secret {
            Secret::Found { version, immutable, .. } => Some((version.clone(), *immutable)),
            _ => None,
        };
        match write {
            Write::Create(contents) if current.is_none() => self.put(contents, wall),
            Write::Replace(version, contents) if current == Some((version.clone(), false)) => {
                self.put(contents, wall);
            }
            Write::Delete { version, .. }
                if current.as_ref().is_some_and(|(now, _)| *now == version) =>
            {
                self.delete();
            }
            Write::Bundle { version, trusted, .. } => {
                let Configuration::Found { generation, version: now, .. } = &self.configuration
                else {
                    return false;
                };
                if *now != version {
                    return false;
                }
                self.configuration = trusting(generation + 1, &trusted);
                self.bundles.push((self.seconds, ders(&trusted)));
            }
            _ => return false,
        }
        true
    }

    fn put(&mut self, contents: Contents, wall: Unix) {
        let mut authorities = contents.authorities;
        if let Some(place) = contents.fresh {
            let number = u32::try_from(self.authorities.len()).unwrap();
            let fresh = pair(number, wall, &self.settings);
            self.authorities.push(fresh.authority.clone());
            match place {
                Place::Signing => authorities.signing = Some(fresh),
                Place::Next => authorities.next = Some(fresh),
            }
        }
        self.promoted += usize::from(contents.step == Step::Promote);
        self.backups.push(authorities.clone());
        self.secret_is(Ok(authorities));
    }

    /// The Secret goes, and what was asked by it.
    pub fn delete(&mut self) {
        (self.secret, self.asked) = (Secret::Absent, None);
    }

    /// Somebody asks for another authority.
    pub fn ask(&mut self) {
        if let Secret::Found { version, asked, .. } = &mut self.secret {
            self.version += 1;
            *version = self.version.to_string();
            *asked = Some(format!("the {}th time", self.version).into());
            self.asked.clone_from(asked);
            self.given_up = Some(self.seconds);
        }
    }

    /// Somebody writes the Secret.
    pub fn secret_is(&mut self, contents: Result<Authorities, Fault>) {
        self.version += 1;
        let (uid, version) = ("u".to_owned(), self.version.to_string());
        let asked = self.asked.clone();
        self.secret = Secret::Found { uid, version, immutable: false, asked, contents };
    }
}

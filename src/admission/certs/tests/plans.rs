//! Single decisions.

use super::*;
use crate::admission::certs::serve::{Serve, Served};

/// What one process reads, as it goes on.
pub struct Process {
    settings: Settings,
    memory: Memory,
    served: Option<Served>,
    leader: bool,
}

impl Process {
    pub fn new(leader: bool) -> Self {
        Self { settings: settings(), memory: Memory::default(), served: None, leader }
    }

    pub fn sees(&mut self, secret: &Secret, configuration: &Configuration, at: u64) -> Plan {
        let now = now(at);
        self.memory.observe(secret, configuration, now.boot);
        let observed = Observed {
            secret,
            configuration,
            memory: &self.memory,
            served: self.served.as_ref(),
            leader: self.leader,
            now,
        };
        plan(&observed, &self.settings)
    }

    pub fn serves(mut self, number: u32, signed: u64) -> Self {
        let issuer = number.to_be_bytes().as_slice().into();
        self.served = Some(Served { issuer, signed: BEGIN + signed, until: BEGIN + signed + 600 });
        self
    }
}

pub fn a(number: u32) -> Authority {
    authority(number, BEGIN, &settings())
}

pub fn signing(number: u32) -> Authorities {
    Authorities { signing: Some(pair(number, BEGIN, &settings())), ..Authorities::default() }
}

fn rotating() -> Authorities {
    Authorities { next: Some(pair(2, BEGIN, &settings())), ..signing(1) }
}

pub fn step(plan: &Plan) -> Option<(Step, Option<Place>)> {
    match &plan.write {
        Some(Write::Create(contents) | Write::Replace(_, contents)) => {
            Some((contents.step, contents.fresh))
        }
        _ => None,
    }
}

pub fn bundle(plan: &Plan) -> Option<BTreeSet<Der>> {
    match &plan.write {
        Some(Write::Bundle { trusted, .. }) => Some(ders(trusted)),
        _ => None,
    }
}

#[test]
fn from_nothing_the_secret_is_written_first_and_the_bundle_then() {
    let mut process = Process::new(true);
    let begun = process.sees(&Secret::Absent, &trusting(1, &[]), 0);
    assert_eq!(step(&begun), Some((Step::Begin, Some(Place::Signing))));
    let mut process = Process::new(true);
    let told = process.sees(&found(1, signing(1)), &trusting(1, &[]), 0);
    assert_eq!(bundle(&told), Some(ders(&[a(1)])));
    assert!(matches!(&told.write, Some(Write::Bundle { entries, .. }) if entries.len() == 2));
    assert!(matches!(told.serve, Serve::Sign(_)));
    // And then there is nothing to do.
    let mut process = Process::new(true).serves(1, 0);
    let done = process.sees(&found(1, signing(1)), &trusting(2, &[a(1)]), 1);
    assert_eq!((done.write, done.ready), (None, Ok(())));
    assert!(done.wake_at <= now(61).boot);
}

#[test]
fn whoever_does_not_lead_or_does_not_know_writes_nothing() {
    let (unknown, some) = (Secret::Unknown("x".into()), found(1, signing(1)));
    let nobody = Configuration::Unknown("y".into());
    for (leader, secret, configuration) in [
        (false, &Secret::Absent, &trusting(1, &[])),
        (false, &some, &trusting(1, &[])),
        (true, &unknown, &trusting(1, &[])),
        (true, &Secret::Absent, &nobody),
        (true, &some, &nobody),
    ] {
        let plan = Process::new(leader).sees(secret, configuration, 0);
        assert_eq!(plan.write, None, "{leader} {secret:?} {configuration:?}");
    }
    // What is not known is said.
    let plan = Process::new(true).sees(&unknown, &nobody, 0);
    assert!(plan.findings[0].contains("aether-system/aether-webhook-ca cannot be read: x"));
    assert!(plan.findings[1].contains("\"aether\" cannot be read: y"), "{:?}", plan.findings);
}

#[test]
fn the_next_one_signs_when_it_was_seen_for_the_overlap_and_not_before() {
    let (secret, live) = (found(1, rotating()), trusting(5, &[a(1), a(2)]));
    let mut process = Process::new(true).serves(1, 0);
    assert_eq!(process.sees(&secret, &live, 10).write, None);
    let waiting = process.sees(&secret, &live, 69);
    assert_eq!((waiting.write, waiting.wake_at), (None, now(70).boot));
    assert_eq!(step(&process.sees(&secret, &live, 70)), Some((Step::Promote, None)));
    // A second leader in a row counts anew, by what it sees itself.
    let mut second = Process::new(true);
    assert_eq!(second.sees(&secret, &live, 70).write, None);
    assert_eq!(second.sees(&secret, &live, 129).write, None);
    assert_eq!(step(&second.sees(&secret, &live, 130)), Some((Step::Promote, None)));
}

#[test]
fn a_gap_in_the_bundle_begins_the_overlap_anew() {
    let (secret, whole) = (found(1, rotating()), [a(1), a(2)]);
    // One change that keeps it is no gap; two of which one was not seen may be.
    for (generation, gap) in [(5, false), (6, false), (7, true), (4, true)] {
        let mut process = Process::new(true).serves(1, 0);
        process.sees(&secret, &trusting(5, &whole), 0);
        let plan = process.sees(&secret, &trusting(generation, &whole), 60);
        assert_eq!(step(&plan).is_none(), gap, "{generation}");
    }
    let mut process = Process::new(true).serves(1, 0);
    process.sees(&secret, &trusting(5, &whole), 0);
    assert!(bundle(&process.sees(&secret, &trusting(6, &[a(1)]), 30)).is_some());
    assert_eq!(process.sees(&secret, &trusting(7, &whole), 60).write, None);
    // Not known for a while, and the same then: nobody touched it.
    let mut process = Process::new(true).serves(1, 0);
    process.sees(&secret, &trusting(5, &whole), 0);
    process.sees(&secret, &Configuration::Unknown("away".into()), 30);
    assert!(step(&process.sees(&secret, &trusting(5, &whole), 60)).is_some());
}

#[test]
fn an_authority_is_replaced_when_a_third_of_its_life_is_left() {
    let live = trusting(5, &[a(1)]);
    let mut process = Process::new(true).serves(1, 2300);
    assert_eq!(process.sees(&found(1, signing(1)), &live, 2399).write, None);
    let due = process.sees(&found(1, signing(1)), &live, 2400);
    assert_eq!(step(&due), Some((Step::Prepare, Some(Place::Next))));
    // By a clock that is wrong it is not valid yet, or no more: nothing but a next one is begun.
    for at in [3600, 1_000_000] {
        let plan = Process::new(true).sees(&found(1, signing(1)), &live, at);
        assert_eq!(step(&plan), Some((Step::Prepare, Some(Place::Next))), "{at}");
    }
}

#[test]
fn a_retired_one_stays_until_all_that_it_signed_has_expired() {
    let retired = Retired { authority: a(1), until: BEGIN + 900 };
    let contents = Authorities { retired: vec![retired], ..signing(2) };
    let (secret, both) = (found(1, contents), trusting(5, &[a(2), a(1)]));
    let mut process = Process::new(true).serves(2, 800);
    assert_eq!(process.sees(&secret, &both, 700).write, None);
    assert_eq!(process.sees(&secret, &both, 899).write, None);
    // It leaves the bundle first, and the Secret then.
    assert_eq!(bundle(&process.sees(&secret, &both, 900)), Some(ders(&[a(2)])));
    let gone = process.sees(&secret, &trusting(6, &[a(2)]), 901);
    assert_eq!(step(&gone), Some((Step::Forget, None)));
    // A calendar that jumps does not shorten it below two overlaps.
    let mut jumped = Process::new(true).serves(2, 800);
    assert_eq!(jumped.sees(&secret, &both, 2000).write, None);
    assert_eq!(jumped.sees(&secret, &both, 2119).write, None);
    assert_eq!(bundle(&jumped.sees(&secret, &both, 2120)), Some(ders(&[a(2)])));
}

#[test]
fn what_was_deleted_or_broken_is_put_back_as_it_was() {
    let live = trusting(5, &[a(1), a(2)]);
    let garbage = Secret::Found {
        uid: "u".into(),
        version: "9".into(),
        immutable: false,
        asked: None,
        contents: Err(Fault::Empty),
    };
    for lost in [Secret::Absent, garbage] {
        let mut process = Process::new(true).serves(1, 0);
        process.sees(&found(1, rotating()), &live, 0);
        let plan = process.sees(&lost, &live, 1);
        let Some(Write::Create(contents) | Write::Replace(_, contents)) = &plan.write else {
            panic!("{plan:?}");
        };
        assert_eq!((contents.step, contents.fresh), (Step::Restore, None));
        assert_eq!(contents.authorities, rotating());
        assert_eq!((plan.ready, plan.serve), (Ok(()), Serve::Keep(now(450).boot)));
        // A process without a memory takes up what is trusted, and begins a new one beside it.
        let plan = Process::new(true).sees(&lost, &live, 1);
        let Some(Write::Create(contents) | Write::Replace(_, contents)) = &plan.write else {
            panic!("{plan:?}");
        };
        assert_eq!((contents.step, contents.fresh), (Step::Begin, Some(Place::Next)));
        let kept: Vec<_> = contents.authorities.all().map(|known| known.der.clone()).collect();
        assert_eq!(kept, [a(1).der, a(2).der]);
    }
}

#[test]
fn a_secret_that_nobody_may_change_is_deleted_when_it_must_change() {
    let frozen = |contents| Secret::Found {
        uid: "u".into(),
        version: "3".into(),
        immutable: true,
        asked: None,
        contents,
    };
    let live = trusting(5, &[a(1)]);
    assert_eq!(Process::new(true).sees(&frozen(Ok(signing(1))), &live, 0).write, None);
    let expected = Some(Write::Delete { uid: "u".into(), version: "3".into() });
    assert_eq!(Process::new(true).sees(&frozen(Ok(signing(1))), &live, 2400).write, expected);
    assert_eq!(Process::new(true).sees(&frozen(Err(Fault::Empty)), &live, 0).write, expected);
}

#[test]
fn a_bundle_of_another_hand_is_put_right_and_nothing_else_is_written() {
    let foreign = Authority { der: b"foreign".as_slice().into(), name: "CN=x".into(), ..a(1) };
    for wrong in [vec![], vec![foreign.clone()], vec![a(1), foreign], vec![a(1), a(1)]] {
        let plan = Process::new(true).sees(&found(1, signing(1)), &trusting(5, &wrong), 0);
        assert_eq!(bundle(&plan), Some(ders(&[a(1)])), "{wrong:?}");
    }
    // One entry alone is wrong: it alone is written.
    let mut half = trusting(5, &[a(1)]);
    if let Configuration::Found { entries, .. } = &mut half {
        entries[1].bundle = Bundle::default();
    }
    let plan = Process::new(true).sees(&found(1, signing(1)), &half, 0);
    let Some(Write::Bundle { entries, version, .. }) = plan.write else { panic!("{plan:?}") };
    assert_eq!(entries, [(1, "namespaces.aether.io".to_owned())]);
    assert_eq!(version, "5");
    // One of ours that is not known is taken up, since somebody may present what it signed.
    let plan = Process::new(true).sees(&found(1, signing(1)), &trusting(5, &[a(7)]), 0);
    assert_eq!(step(&plan), Some((Step::Adopt, None)));
}

#[test]
fn a_certificate_is_renewed_at_two_thirds_and_only_when_it_is_certain() {
    let (secret, live) = (found(1, signing(1)), trusting(5, &[a(1)]));
    let mut process = Process::new(false).serves(1, 0);
    assert_eq!(process.sees(&secret, &live, 399).serve, Serve::Keep(now(400).boot));
    assert!(matches!(process.sees(&secret, &live, 400).serve, Serve::Sign(_)));
    // Cut off, or with a Secret that cannot be read, it waits to three quarters for somebody to
    // say how things are, and signs with what it remembers before it has nothing.
    let (unknown, away) = (Secret::Unknown("x".into()), Configuration::Unknown("x".into()));
    for configuration in [&away, &live] {
        let kept = process.sees(&unknown, configuration, 449);
        assert_eq!(kept.serve, Serve::Keep(now(450).boot));
        assert!(matches!(process.sees(&unknown, configuration, 450).serve, Serve::Sign(_)));
    }
}

#[test]
fn it_is_ready_when_what_it_presents_is_trusted() {
    let ready = |served: Option<u32>, configuration: &Configuration, at| {
        let mut process = Process::new(false);
        if let Some(number) = served {
            process = process.serves(number, 0);
        }
        process.sees(&found(1, signing(1)), configuration, at).ready
    };
    let live = trusting(5, &[a(1)]);
    assert_eq!(ready(Some(1), &live, 0), Ok(()));
    let mut host = live.clone();
    if let Configuration::Found { entries, .. } = &mut host {
        entries[0].host = Some("elsewhere.test".to_owned());
    }
    let mut none = live.clone();
    if let Configuration::Found { entries, .. } = &mut none {
        entries.clear();
    }
    let table = [
        (None, &live, 0, "there is no certificate yet"),
        (Some(1), &live, 600, "has expired"),
        (Some(1), &trusting(5, &[]), 0, "does not hold the authority"),
        (Some(1), &trusting(5, &[a(2)]), 0, "does not hold the authority"),
        (Some(1), &Configuration::Absent, 0, "apply charts/manifests/webhook.yaml"),
        (Some(1), &Configuration::Unknown("x".into()), 0, "could not be read yet"),
        (Some(1), &none, 0, "has no entry pods.aether.io"),
        (Some(1), &host, 0, "--webhook-names"),
    ];
    for (served, configuration, at, words) in table {
        let why = ready(served, configuration, at).unwrap_err();
        assert!(why.contains(words), "{words}: {why}");
    }
    // One entry of two does not trust it.
    let mut half = live;
    if let Configuration::Found { entries, .. } = &mut half {
        entries[1].bundle = Bundle::default();
    }
    assert!(ready(Some(1), &half, 0).is_err());
}

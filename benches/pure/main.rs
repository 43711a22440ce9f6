//! What one change costs in the pure parts, from the object to what a stream is to be sent, in meshes of 100, 1,000 and
//! 10,000 services: `it/bench --pure`, or `cargo bench --bench pure`. Numbers as arguments choose other sizes.
//!
//! Each part is measured by itself and after the one before, as they follow each other when served:
//!
//! - *index*: the object is read into facts;
//! - *project*: the facts become the projection;
//! - *translate*: what changed of it is translated and encoded, once for all proxies, and the snapshot made;
//! - *diff*: one stream compares the snapshot with what its proxy has, and decides what to send;
//! - *round*: the reconciler's whole round from the object to the snapshot, of a mesh of its own.
//!
//! There is one pod that calls; where pods come there are as many as services.
#![allow(clippy::unwrap_used, clippy::panic)]

mod mesh;
mod stream;

use std::hint::black_box;
use std::time::{Duration, Instant};

use aether::capture::Reconciler;
use aether::index::{self, Index};
use aether::source::Update;
use aether::translate::{self, Translator};

use crate::mesh::{Mesh, What};
use crate::stream::Stream;

/// How often each kind of change is made.
const TIMES: usize = 100;

fn main() {
    // Cargo adds an argument of its own.
    let sizes = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let number = |size: String| -> usize {
        size.parse().unwrap_or_else(|_| panic!("{size:?} is no number of services"))
    };
    let sizes: Vec<usize> = sizes.map(number).collect();
    let sizes = if sizes.is_empty() { vec![100, 1_000, 10_000] } else { sizes };
    println!(
        "median (99th percentile) of {TIMES} changes each, in microseconds; 5 endpoints a service\n"
    );
    println!(
        "{:>8}  {:22}{:>14}{:>16}{:>16}{:>14}{:>16}",
        "services", "change", "index", "project", "translate", "diff", "round"
    );
    for size in sizes {
        for what in What::ALL {
            println!("{size:>8}  {:22}{}", what.words(), cost(size, what));
        }
    }
}

/// The line of one kind of change in a mesh of some services.
fn cost(size: usize, what: What) -> String {
    let mut mesh = Mesh::new(size, what);
    let mut index = Index::new(index::Settings::default());
    let mut translator = Translator::new(translate::Settings::default());
    let mut reconciler =
        Reconciler::new(index::Settings::default(), translate::Settings::default());
    let all = mesh.all();
    reconciler.apply(Update { changes: all.clone(), findings: Vec::new() });
    assert!(reconciler.reconcile().snapshot.is_some());
    for change in all {
        index.apply(change);
    }
    let mut stream = Stream::new(&translator.translate(&index.project()).snapshot);

    let mut parts: [Vec<Duration>; 5] = std::array::from_fn(|_| Vec::new());
    let [of_index, of_project, of_translate, of_diff, of_round] = &mut parts;
    // What one part leaves behind is dropped where the next begins, as it is when served.
    let mut last = None;
    for _ in 0..TIMES {
        let changes = mesh.change(what);
        let update = Update { changes: changes.clone(), findings: Vec::new() };
        timed(of_index, || changes.into_iter().for_each(|change| index.apply(change)));
        let projection = timed(of_project, || index.project());
        let translated = timed(of_translate, || translator.translate(&projection));
        let sent = timed(of_diff, || stream.takes(&translated.snapshot));
        assert!(sent > 0 || !what.is_sent(), "a stream is sent what changed");
        let round = timed(of_round, || {
            reconciler.apply(update);
            reconciler.reconcile()
        });
        assert!(round.snapshot.is_some(), "each change makes a snapshot");
        last = Some((projection, translated, round));
    }
    black_box(last);
    let [index, project, translate, diff, round] = parts.map(in_words);
    format!("{index:>14}{project:>16}{translate:>16}{diff:>14}{round:>16}")
}

/// Does it, and notes how long it took.
fn timed<T>(all: &mut Vec<Duration>, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = black_box(work());
    all.push(begun.elapsed());
    done
}

fn in_words(mut all: Vec<Duration>) -> String {
    all.sort();
    let at = |percent: usize| all.get((all.len() * percent / 100).min(all.len() - 1)).unwrap();
    format!("{} ({})", at(50).as_micros(), at(99).as_micros())
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

mod edits;

use super::*;
use crate::source::folder::testing::{Taken, node, write};

const MS: Duration = Duration::from_millis(1);

/// A folder, its scanner, and a clock that the test turns.
struct Rig {
    folder: TempDir,
    scanner: Scanner,
    now: Instant,
    taken: Taken,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scanner = Scanner::new(Loader::new(folder.path().to_owned()), Watcher::Once);
        Self { folder, scanner, now: Instant::now(), taken: Taken::default() }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Looks at everything, and gives the number of changes.
    fn scan(&mut self) -> usize {
        self.step(Work { rescan: true, ..Work::default() })
    }

    /// Looks at one path.
    fn settled(&mut self, path: &str) -> usize {
        let path = self.root().join(path);
        self.step(Work { settled: [path].into(), ..Work::default() })
    }

    fn step(&mut self, work: Work) -> usize {
        let update = self.scanner.step(work, self.now);
        update.map_or(0, |update| self.taken.update(update))
    }

    fn wait(&mut self, time: Duration) -> usize {
        self.now += time;
        self.step(Work::default())
    }
}

#[test]
fn the_first_update_comes_even_if_it_is_empty_and_then_none_without_news() {
    let mut rig = Rig::new();
    assert!(rig.scanner.step(Work::default(), rig.now).is_some());
    assert!(rig.scanner.step(Work::default(), rig.now).is_none());
    write(rig.root(), "a.yaml", &node("x1", 1));
    assert_eq!(rig.settled("a.yaml"), 1);
    assert!(rig.scanner.step(Work { rescan: true, ..Work::default() }, rig.now).is_none());
    write(rig.root(), "b.yaml", "{");
    assert_eq!(rig.settled("b.yaml"), 0);
    assert!(rig.taken.said().contains("b.yaml#1"), "{}", rig.taken.said());
}

#[test]
fn an_event_is_a_look_at_its_path_alone() {
    let mut rig = Rig::new();
    rig.scan();
    for path in ["a.yaml", "b.yaml", ".c.yaml", "d.txt"] {
        write(rig.root(), path, &node("x1", 1));
    }
    assert_eq!(rig.settled("b.yaml"), 1);
    assert_eq!(rig.settled(".c.yaml") + rig.settled("d.txt"), 0);
    assert_eq!(rig.taken.show(), "x1@b.yaml#1");
    // A folder is a look at everything.
    write(rig.root(), "sub/e.yaml", &node("x2", 1));
    rig.settled("sub");
    assert_eq!(rig.taken.show(), "x1@b.yaml#1 x2@sub/e.yaml#1");
    assert!(rig.taken.said().contains("a.yaml#1"));
}

#[test]
fn a_file_is_gone_only_when_it_stays_gone() {
    let mut rig = Rig::new();
    write(rig.root(), "a.yaml", &node("x1", 1));
    rig.scan();
    for full in [false, true] {
        std::fs::remove_file(rig.root().join("a.yaml")).unwrap();
        assert_eq!(if full { rig.scan() } else { rig.settled("a.yaml") }, 0);
        assert_eq!(rig.wait(GRACE.saturating_sub(MS)), 0);
        write(rig.root(), "a.yaml", &node("x1", 2 + u32::from(full)));
        assert_eq!(rig.settled("a.yaml"), 1);
        assert_eq!(rig.wait(GRACE), 0);
    }
    std::fs::remove_file(rig.root().join("a.yaml")).unwrap();
    rig.settled("a.yaml");
    assert_eq!(rig.scanner.due(), Some(rig.now + GRACE));
    assert_eq!(rig.wait(GRACE), 1);
    assert_eq!(rig.taken.show(), "");
}

#[test]
fn a_file_that_is_written_is_read_when_it_is_closed_or_quiet() {
    let mut rig = Rig::new();
    write(rig.root(), "a.yaml", &node("x1", 1));
    rig.scan();
    let path = rig.root().join("a.yaml");
    let writing = || Work { writing: [path.clone()].into(), ..Work::default() };
    write(rig.root(), "a.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: y1}\n");
    assert_eq!(rig.step(writing()), 0);
    // Others' events do not make it read half-written.
    write(rig.root(), "sub/b.yaml", &node("x2", 1));
    assert_eq!(rig.settled("sub"), 1);
    assert_eq!(rig.taken.show(), "x1@a.yaml#1 x2@sub/b.yaml#1");
    write(rig.root(), "a.yaml", &node("x1", 2));
    assert_eq!(rig.settled("a.yaml"), 1);
    // Without a close it is read when it has been quiet.
    write(rig.root(), "a.yaml", &node("x1", 3));
    assert_eq!(rig.step(writing()), 0);
    assert_eq!(rig.wait(QUIET.saturating_sub(MS)), 0);
    assert_eq!(rig.step(writing()), 0);
    assert_eq!(rig.wait(QUIET.saturating_sub(MS)), 0);
    assert_eq!(rig.wait(MS), 1);
    assert_eq!(rig.taken.value("x1").as_deref(), Some("v3"));
}

#[test]
fn the_folder_itself_may_go_and_come_back() {
    let mut rig = Rig::new();
    write(rig.root(), "a.yaml", &node("x1", 1));
    write(rig.root(), "sub/b.yaml", &node("x2", 1));
    rig.scan();
    let away = rig.root().with_extension("away");
    std::fs::rename(rig.root(), &away).unwrap();
    for _ in 0..20 {
        assert_eq!(rig.settled("a.yaml") + rig.scan() + rig.wait(GRACE * 2), 0);
    }
    assert!(rig.taken.said().contains("the folder of manifests cannot be read"));
    assert!(rig.scanner.due().unwrap() - rig.now <= Duration::from_secs(4));
    std::fs::rename(&away, rig.root()).unwrap();
    assert_eq!(rig.wait(Duration::from_secs(4)), 0);
    assert_eq!(rig.taken.said(), "");
    // A file in its place is no reason either.
    std::fs::rename(rig.root(), &away).unwrap();
    std::fs::write(rig.root(), "").unwrap();
    assert_eq!(rig.scan() + rig.wait(GRACE * 2), 0);
    std::fs::remove_file(rig.root()).unwrap();
    std::fs::rename(&away, rig.root()).unwrap();
    std::fs::remove_dir_all(rig.root().join("sub")).unwrap();
    assert_eq!(rig.wait(Duration::from_secs(4)) + rig.wait(GRACE), 1);
    assert_eq!(rig.taken.show(), "x1@a.yaml#1");
}

#[test]
fn an_empty_folder_in_its_place_empties_nothing() {
    let mut rig = Rig::new();
    write(rig.root(), "a.yaml", &node("x1", 1));
    write(rig.root(), "sub/b.yaml", &node("x2", 1));
    rig.scan();
    let away = rig.root().with_extension("away");
    std::fs::rename(rig.root(), &away).unwrap();
    // What an empty volume may hold, besides nothing.
    std::fs::create_dir_all(rig.root().join("lost+found")).unwrap();
    for _ in 0..5 {
        assert_eq!(rig.settled("a.yaml") + rig.scan() + rig.wait(GRACE * 2), 0);
        let said = rig.taken.said();
        assert!(
            said.contains("another folder") && said.contains("mount the volume again"),
            "{said}"
        );
        assert!(rig.scanner.due().unwrap() - rig.now <= Duration::from_secs(4));
    }
    // The folder that was there before is back.
    std::fs::remove_dir_all(rig.root()).unwrap();
    std::fs::rename(&away, rig.root()).unwrap();
    assert_eq!(rig.wait(Duration::from_secs(4)), 0);
    assert_eq!(rig.taken.said(), "");
    // Another one with a manifest is what counts now, and may be emptied as the first one might.
    std::fs::rename(rig.root(), &away).unwrap();
    std::fs::create_dir(rig.root()).unwrap();
    assert_eq!(rig.scan() + rig.wait(GRACE * 2), 0);
    write(rig.root(), "c.yaml", "# nothing\n");
    assert_eq!(rig.settled("c.yaml") + rig.scan() + rig.wait(Duration::from_secs(4)), 2);
    assert_eq!((rig.taken.show(), rig.taken.said()), (String::new(), String::new()));
    write(rig.root(), "c.yaml", &node("x3", 1));
    rig.settled("c.yaml");
    assert_eq!(rig.taken.show(), "x3@c.yaml#1");
    std::fs::remove_file(rig.root().join("c.yaml")).unwrap();
    assert_eq!(rig.scan() + rig.wait(GRACE), 1);
    assert_eq!((rig.taken.show(), rig.taken.said()), (String::new(), String::new()));
    std::fs::remove_dir_all(away).unwrap();
}

#[test]
fn nothing_is_said_before_the_folder_could_be_read() {
    let mut rig = Rig::new();
    write(rig.root(), "a.yaml", &node("x1", 1));
    let away = rig.root().with_extension("gone");
    std::fs::rename(rig.root(), &away).unwrap();
    assert!(rig.scanner.step(Work::default(), rig.now).is_none());
    std::fs::rename(&away, rig.root()).unwrap();
    assert_eq!(rig.wait(Duration::from_millis(100)), 1);
}

#[test]
fn what_cannot_be_read_any_more_keeps_what_it_held() {
    let mut rig = Rig::new();
    write(rig.root(), "a.yaml", &node("x1", 1));
    write(rig.root(), "b.yaml", &node("x2", 1));
    rig.scan();
    // Root may read everything, so a folder and a limit stand for what is refused.
    std::fs::remove_file(rig.root().join("a.yaml")).unwrap();
    symlink("/dev/null", rig.root().join("a.yaml")).unwrap();
    rig.scanner.loader.most = 3;
    write(rig.root(), "b.yaml", &node("x2", 2));
    assert_eq!(rig.scan() + rig.wait(GRACE * 2), 0);
    assert!(
        rig.taken.said().contains("no ordinary file, so the one object"),
        "{}",
        rig.taken.said()
    );
    assert!(rig.taken.said().contains("more than the 3"), "{}", rig.taken.said());
    rig.scanner.loader.most = 1 << 20;
    std::fs::remove_file(rig.root().join("a.yaml")).unwrap();
    write(rig.root(), "a.yaml", &node("x1", 1));
    assert_eq!(rig.scan(), 1);
    assert_eq!(rig.taken.said(), "");
}

#[test]
fn a_link_may_lead_nowhere_for_a_moment() {
    let mut rig = Rig::new();
    write(rig.root(), "..1/a.yaml", &node("x1", 1));
    symlink("..1/a.yaml", rig.root().join("a.yaml")).unwrap();
    symlink("nowhere", rig.root().join("b.yaml")).unwrap();
    assert_eq!(rig.scan(), 1);
    assert!(rig.taken.said().contains("(b.yaml): it is a link that leads nowhere"));
    std::fs::rename(rig.root().join("..1"), rig.root().join("..2")).unwrap();
    assert_eq!(rig.scan(), 0);
    assert!(!rig.taken.said().contains("(a.yaml)"));
    assert_eq!(rig.wait(GRACE), 0);
    assert!(rig.taken.said().contains("(a.yaml)"), "{}", rig.taken.said());
    write(rig.root(), "..1/a.yaml", &node("x1", 2));
    assert_eq!(rig.scan(), 1);
    assert!(!rig.taken.said().contains("(a.yaml)"));
}

#[test]
fn a_renamed_folder_brings_no_news_but_new_places() {
    let mut rig = Rig::new();
    write(rig.root(), "old/a.yaml", &node("x1", 1));
    rig.scan();
    std::fs::rename(rig.root().join("old"), rig.root().join("new")).unwrap();
    rig.settled("old");
    assert_eq!(rig.taken.said(), "");
    rig.wait(GRACE);
    assert_eq!(rig.taken.show(), "x1@new/a.yaml#1");
    assert_eq!(rig.taken.said(), "");
}

#[test]
fn after_a_defect_everything_is_read_again() {
    let mut rig = Rig::new();
    write(rig.root(), "a.yaml", &node("x1", 1));
    rig.scan();
    rig.scanner.distrust(rig.now);
    assert!(rig.scanner.seen.values().all(|seen| seen.stamp.is_none()));
    assert_eq!(rig.wait(Duration::from_millis(100)), 0);
    assert!(rig.scanner.seen.values().all(|seen| seen.hash.is_some()));
}

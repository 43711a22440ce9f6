#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Instant;

use super::*;
use crate::health::Health;

fn text(generation: u64, ip: &str) -> String {
    format!(
        r#"{{"writtenAt":100,"generation":{generation},"records":{{"shop/cart":"{ip}"}},"short":{{}}}}"#
    )
}

fn replace(path: &Path, text: &str) {
    let fresh = path.with_extension("tmp");
    fs::write(&fresh, text).unwrap();
    fs::rename(fresh, path).unwrap();
}

fn follower(path: &Path) -> (Follower, Arc<ArcSwapOption<Table>>, Arc<Metrics>) {
    let (table, metrics) = (Arc::new(ArcSwapOption::empty()), Arc::new(Metrics::new()));
    let part = Health::default().part("names");
    (Follower::new(path, table.clone(), metrics.clone(), part), table, metrics)
}

fn generation(table: &ArcSwapOption<Table>) -> Option<u64> {
    table.load().as_ref().map(|table| table.generation)
}

#[test]
fn a_broken_file_leaves_the_last_good_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.json");
    let (mut follower, table, metrics) = follower(&path);
    follower.look();
    assert_eq!(generation(&table), None);
    replace(&path, &text(1, "10.96.0.7"));
    follower.look();
    assert_eq!(generation(&table), Some(1));
    for broken in ["", "{", r#"{"writtenAt":1}"#, "[1,2]"] {
        replace(&path, broken);
        follower.look();
        follower.look();
        assert_eq!(generation(&table), Some(1), "{broken}");
    }
    let told = metrics.text();
    assert!(told.contains("snapshot_errors_total 4"), "each once: {told}");
    fs::remove_file(&path).unwrap();
    follower.look();
    assert_eq!(generation(&table), Some(1), "a file that is gone");
    replace(&path, &text(2, "10.96.0.8"));
    follower.look();
    assert_eq!(generation(&table), Some(2));
}

#[test]
fn a_folder_that_comes_later_is_found_and_so_is_another_in_its_place() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("aether/mesh-dns");
    let path = folder.join("records.json");
    let (follower, table, _) = follower(&path);
    follower.spawn().unwrap();
    let becomes = |wanted| {
        let start = Instant::now();
        while generation(&table) != Some(wanted) {
            assert!(start.elapsed() < Duration::from_secs(10), "generation {wanted}");
            std::thread::sleep(Duration::from_millis(2));
        }
        start.elapsed()
    };
    std::thread::sleep(Duration::from_millis(50));
    fs::create_dir_all(&folder).unwrap();
    replace(&path, &text(1, "10.96.0.7"));
    becomes(1);
    // The folder is watched now: a change is seen before the next look.
    std::thread::sleep(LOOK + Duration::from_millis(200));
    replace(&path, &text(2, "10.96.0.7"));
    let took = becomes(2);
    assert!(took < LOOK / 2, "{took:?}");
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir_all(&folder).unwrap();
    replace(&path, &text(3, "10.96.0.7"));
    becomes(3);
    std::thread::sleep(LOOK + Duration::from_millis(200));
    replace(&path, &text(4, "10.96.0.7"));
    let took = becomes(4);
    assert!(took < LOOK / 2, "{took:?}");
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.json");
    File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
    let (mut follower, table, metrics) = follower(&path);
    follower.look();
    assert_eq!(generation(&table), None);
    assert!(metrics.text().contains("snapshot_errors_total 1"));
}

#[test]
fn a_folder_with_the_number_of_the_one_before_is_another() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("a");
    fs::create_dir(&folder).unwrap();
    let (events, happened) = channel();
    let mut watched = Watched::default();
    watched.keep(&folder, &events);
    fs::remove_dir(&folder).unwrap();
    let start = Instant::now();
    while !watched.removed.load(Relaxed) {
        assert!(start.elapsed() < Duration::from_secs(10), "its removal is an event");
        std::thread::sleep(Duration::from_millis(2));
    }
    fs::create_dir(&folder).unwrap();
    // Where the file system gives its number to no other, it looks as if it did.
    watched.folder = fs::metadata(&folder).ok().map(|found| (found.dev(), found.ino()));
    watched.keep(&folder, &events);
    while happened.try_recv().is_ok() {}
    fs::write(folder.join("x"), "").unwrap();
    assert!(happened.recv_timeout(Duration::from_secs(10)).is_ok(), "it is watched");
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use super::*;
use crate::model::{MeshPort, Protocol, RecordsFile, TrafficScope};

fn records(last: u8) -> Records {
    let key: ServiceKey = "shop/cart".parse().unwrap();
    let v4 = [(key.clone(), [10, 96, 0, last].into())].into();
    Records { v4, short: [("cart".into(), key)].into(), ..Records::default() }
}

/// The projection of that service, with a port.
fn projection(last: u8, port: u16) -> Projection {
    let key: ServiceKey = "shop/cart".parse().unwrap();
    let ips = vec![[10, 96, 0, last].into()];
    let protocol = Protocol::from_word("http");
    let service = MeshService {
        key: key.clone(),
        service: "cart".into(),
        cluster_ips: ips.clone(),
        owned_ips: ips,
        headless: false,
        owns_short_name: true,
        ports: vec![MeshPort { number: port, protocol, endpoints: Vec::new() }],
        default_port: port,
        scope: TrafficScope::Cluster,
    };
    Projection { services: OrdMap::unit(key, Arc::new(service)), ..Projection::default() }
}

fn read(path: &Path) -> RecordsFile {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Waits for something at most 20 s.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/records.json");
    (folder, path)
}

#[test]
fn the_file_is_replaced_whole_readable_by_all_and_its_folder_made() {
    let (_folder, path) = folder();
    let mut file = SnapshotFile::new(&path);
    assert_eq!(file.store(&records(1), 100).unwrap().generation, 1);
    let first = fs::metadata(&path).unwrap();
    assert_eq!(first.permissions().mode() & 0o7777, 0o644);
    let open = fs::File::open(&path).unwrap();
    assert_eq!(file.store(&records(2), 200).unwrap().generation, 2);
    assert_ne!(fs::metadata(&path).unwrap().ino(), first.ino());
    let old: RecordsFile = serde_json::from_reader(open).unwrap();
    assert_eq!(
        (old.generation, old.written_at),
        (1, 100),
        "whoever reads the old one has it whole"
    );
    assert_eq!(read(&path).written_at, 200);
    let beside = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1, "nothing else is left");
}

#[test]
fn the_generation_goes_on_from_the_file_and_never_falls() {
    let (_folder, path) = folder();
    SnapshotFile::new(&path).store(&records(1), 100).unwrap();
    // A restart: the same records, then others.
    let mut next = SnapshotFile::new(&path);
    assert_eq!(next.store(&records(1), 160).unwrap().generation, 1);
    assert_eq!(next.store(&records(2), 161).unwrap().generation, 2);
    // Another process wrote in between.
    SnapshotFile::new(&path).store(&records(3), 162).unwrap();
    assert_eq!(next.store(&records(3), 163).unwrap().generation, 3, "what that one wrote");
    assert_eq!(next.store(&records(4), 164).unwrap().generation, 4);
    // Somebody put an old file back, or took it away.
    fs::write(&path, r#"{"writtenAt":1,"generation":1,"records":{}}"#).unwrap();
    assert_eq!(next.store(&records(4), 165).unwrap().generation, 4);
    fs::remove_file(&path).unwrap();
    assert_eq!(next.store(&records(5), 166).unwrap().generation, 5);
    // A file that is none: whatever its generation was, this one is higher.
    fs::write(&path, "{").unwrap();
    let content = SnapshotFile::new(&path).store(&records(5), 1_700_000_000).unwrap().clone();
    assert!(content.generation >= 1_700_000_000, "{content:?}");
    assert_eq!(read(&path), content);
}

#[test]
fn what_a_killed_writer_left_is_used_and_a_living_one_is_respected() {
    let (_folder, path) = folder();
    let mut file = SnapshotFile::new(&path);
    file.store(&records(1), 100).unwrap();
    let left = path.with_file_name(".records.json.tmp");
    fs::write(&left, "{\"half").unwrap();
    file.store(&records(2), 101).unwrap();
    assert!(!left.exists());
    let living = fs::File::create(&left).unwrap();
    living.lock().unwrap();
    let error = file.store(&records(3), 102).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    assert_eq!(read(&path).generation, 2);
    drop(living);
    assert_eq!(file.store(&records(3), 103).unwrap().generation, 3);
}

#[test]
fn an_error_says_what_to_do() {
    let (folder, path) = folder();
    fs::write(folder.path().join("a"), "a file where a folder should be").unwrap();
    let error = SnapshotFile::new(&path).store(&records(1), 1).unwrap_err().to_string();
    assert!(error.contains("a/b") && error.contains("--mesh-dns-snapshot"), "{error}");
}

#[test]
fn nothing_is_written_before_the_first_projection_and_an_empty_one_counts() {
    let (_folder, path) = folder();
    let beat = Duration::from_millis(20);
    let mut names = Names::start(&path, beat, Metrics::default()).unwrap();
    for _ in 0..5 {
        futures::executor::block_on(names.beat());
        names.vouch();
    }
    assert!(!path.exists());
    names.projected(&Projection::default());
    until("the first file", || path.exists());
    assert_eq!(read(&path).generation, 1);
    assert!(read(&path).records.is_empty());
}

#[test]
fn the_stamp_is_the_time_of_the_reconcilers_answer_and_stays_without_one() {
    let (_folder, path) = folder();
    let metrics = Metrics::default();
    let beat = Duration::from_millis(200);
    let mut names = Names::start(&path, beat, metrics.clone()).unwrap();
    names.projected(&Projection::default());
    // It is counted after it is there.
    until("the first file", || metrics.writes.get() == 1);
    // A reconciler that hangs: the beats go unanswered.
    std::thread::sleep(5 * beat);
    assert_eq!(metrics.writes.get(), 1, "nobody vouched");
    // It lives again; what had queued up is one beat.
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    futures::executor::block_on(names.beat());
    names.vouch();
    until("a new stamp", || metrics.writes.get() == 2);
    assert!(read(&path).written_at >= before);
    assert_eq!(read(&path).generation, 1, "a stamp is no change");
}

#[test]
fn what_changes_no_record_writes_nothing() {
    let (_folder, path) = folder();
    let metrics = Metrics::default();
    let mut names = Names::start(&path, Duration::from_mins(1), metrics.clone()).unwrap();
    names.projected(&projection(1, 80));
    until("the first file", || metrics.writes.get() == 1);
    names.projected(&projection(1, 81));
    assert!(names.desk.tray().vouched.is_none());
    names.projected(&projection(2, 81));
    until("the next file", || metrics.writes.get() == 2);
    assert_eq!(read(&path).records["shop/cart"], "10.96.0.2");
    names.projected(&Projection::default());
    until("an empty file", || metrics.writes.get() == 3);
    assert!(read(&path).records.is_empty() && read(&path).generation == 3);
}

#[test]
fn a_failed_write_is_tried_again_with_the_newest_records_and_stops_nothing() {
    let (folder, path) = folder();
    let obstacle = folder.path().join("a");
    fs::write(&obstacle, "").unwrap();
    let metrics = Metrics::default();
    let mut names = Names::start(&path, Duration::from_mins(1), metrics.clone()).unwrap();
    names.projected(&projection(1, 1));
    until("a failure", || metrics.failures.get() == 1);
    let vouched = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    names.projected(&projection(2, 1));
    until("a second failure, after a pause", || metrics.failures.get() == 2);
    fs::remove_file(&obstacle).unwrap();
    until("the file", || path.exists());
    let content = read(&path);
    assert_eq!(content.records["shop/cart"], "10.96.0.2");
    assert!(content.written_at <= vouched + 1, "the stamp is when it was vouched for");
}

#[test]
fn the_writing_ends_with_the_reconciler_and_what_was_vouched_for_is_written() {
    let (_folder, path) = folder();
    let mut names = Names::start(&path, Duration::from_mins(1), Metrics::default()).unwrap();
    names.projected(&Projection::default());
    let desk = Arc::downgrade(&names.desk);
    drop(names);
    until("the thread's end", || desk.strong_count() == 0);
    assert!(path.exists());
}

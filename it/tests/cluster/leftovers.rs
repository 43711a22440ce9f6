//! A cluster leaves nothing behind, however it ends.

use std::io::BufRead as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use it::cluster::{Cluster, FakeNode, Options};

use crate::SOON;

/// The processes whose command line names this folder.
fn processes_of(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(folder)).collect()
}

/// What the next test runs in a process of its own, to kill it.
#[tokio::test]
#[ignore = "a part of another test, which runs it"]
async fn a_cluster_that_waits_to_be_killed() {
    let cluster = Cluster::start(Options::whole([FakeNode::new("node", "a")])).await.unwrap();
    println!("\nup {}", cluster.folder().display());
    tokio::time::sleep(Duration::from_mins(2)).await;
}

#[test]
fn a_cluster_whose_test_is_killed_goes_with_it() {
    let mut rig = Command::new(std::env::current_exe().unwrap());
    let rig = rig.args([
        "leftovers::a_cluster_that_waits_to_be_killed",
        "--ignored",
        "--nocapture",
        "--exact",
    ]);
    let mut rig = rig.stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufReader::new(rig.stdout.take().unwrap()).lines();
    let up = lines.map(Result::unwrap).find(|line| line.starts_with("up ")).unwrap();
    let folder = up.strip_prefix("up ").unwrap();
    assert_eq!(processes_of(folder).len(), 5, "{:?}", processes_of(folder));
    rig.kill().unwrap();
    rig.wait().unwrap();
    let start = Instant::now();
    while !processes_of(folder).is_empty() {
        assert!(start.elapsed() < SOON, "left behind: {:?}", processes_of(folder));
        std::thread::sleep(Duration::from_millis(20));
    }
    it::net::sweep();
    assert!(!std::path::Path::new(folder).exists());
}

#[tokio::test]
async fn a_cluster_that_ends_leaves_nothing_behind() {
    // One that never starts neither: its API server refuses a flag, and says which.
    let error = Cluster::start(Options::bare().api_server("--no-such-flag")).await.unwrap_err();
    assert!(format!("{error:#}").contains("no-such-flag"), "{error:#}");

    let cluster = Cluster::start(Options::bare()).await.unwrap();
    let folder = cluster.folder().to_owned();
    let name = folder.to_str().unwrap();
    assert_eq!(processes_of(name).len(), 2, "{:?}", processes_of(name));
    drop(cluster);
    assert!(processes_of(name).is_empty() && !folder.exists());
}

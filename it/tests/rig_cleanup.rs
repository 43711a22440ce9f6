//! The rig proves itself: it leaves nothing behind, however it ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::io::BufRead;
use std::process::{Command, Stdio};
use std::time::Duration;

use it::net::{Mode, Net, Redirect};
use it::sidecar::passing;
use tokio::net::{TcpListener, TcpStream};

const SOON: Duration = Duration::from_secs(20);

/// The network namespaces and folders there are that bear our process id.
fn ours() -> BTreeSet<String> {
    let own = format!("-{}-", std::process::id());
    let names =
        ["/run/netns", "/tmp"].into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(&own))
        .collect()
}

#[tokio::test]
async fn nothing_is_left_behind() {
    let net = Net::new().unwrap();
    let (pod, mut envoy) = passing(&net, &Redirect::new(Mode::All), SOON).await.unwrap();
    let names = [pod.netns().name().to_owned(), net.node().name().to_owned()];
    let folders = ours().into_iter().filter(|name| name.starts_with("aether-it-")).count();
    assert!(folders > 0 && names.iter().all(|name| ours().contains(name)));
    let id = envoy.process().id();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    assert!(status.contains("Name:\tenvoy") && status.contains("Uid:\t1337\t1337"), "{status}");
    assert!(status.contains("CapEff:\t0000000000000000"), "{status}");

    // A server is bound and a connection open when it all goes.
    let listener = pod.run(async { Ok(TcpListener::bind("127.0.0.1:1").await?) }).await.unwrap();
    let connected = pod.run(async { Ok(TcpStream::connect("127.0.0.1:1").await?) }).await.unwrap();
    drop((envoy, pod, net));
    drop((listener, connected));
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    assert!(names.iter().all(|name| !ours().contains(name)));
}

/// What the next test runs in a process of its own, to kill it.
#[tokio::test]
#[ignore = "a part of another test, which runs it"]
async fn a_rig_that_waits_to_be_killed() {
    let net = Net::new().unwrap();
    let (pod, mut envoy) = passing(&net, &Redirect::new(Mode::All), SOON).await.unwrap();
    println!("\nup {} {}", envoy.process().id(), pod.netns().name());
    tokio::time::sleep(Duration::from_mins(1)).await;
}

#[test]
fn a_rig_that_is_killed_takes_its_processes_along_and_the_next_one_sweeps() {
    let mut rig = Command::new(std::env::current_exe().unwrap());
    let rig = rig.args(["a_rig_that_waits_to_be_killed", "--ignored", "--nocapture", "--exact"]);
    let mut rig = rig.stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufReader::new(rig.stdout.take().unwrap()).lines();
    let up = lines.map(Result::unwrap).find(|line| line.starts_with("up ")).unwrap();
    let [_, envoy, netns] = up.split(' ').collect::<Vec<_>>()[..] else { panic!("{up}") };
    let (envoy, netns) = (format!("/proc/{envoy}/exe"), format!("/run/netns/{netns}"));
    assert!(std::path::Path::new(&envoy).exists() && std::path::Path::new(&netns).exists());
    let folder = format!("aether-it-{}-", rig.id());
    let folders = || {
        let names = std::fs::read_dir("/tmp").unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(&folder)).count()
    };
    assert_eq!(folders(), 1);

    rig.kill().unwrap();
    rig.wait().unwrap();
    // The kernel kills Envoy; only its parent, which is now init, can say when it is gone for good.
    let start = std::time::Instant::now();
    while std::path::Path::new(&envoy).exists() {
        assert!(start.elapsed() < SOON, "Envoy outlived its rig");
        std::thread::sleep(Duration::from_millis(10));
    }
    it::net::sweep();
    assert!(!std::path::Path::new(&netns).exists());
    assert_eq!(folders(), 0);
}

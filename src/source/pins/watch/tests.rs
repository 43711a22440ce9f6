#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;
use std::time::Instant;

use tokio::time::timeout;

use super::*;

const SOON: Duration = Duration::from_secs(10);

/// Waits until these pods are pinned, or until nothing is known of any.
async fn until(pins: &mut watch::Receiver<Option<Arc<Pins>>>, uids: Option<&[&str]>) -> Duration {
    let start = Instant::now();
    let wanted = |pins: &Option<Arc<Pins>>| match (pins, uids) {
        (None, None) => true,
        (Some(pins), Some(uids)) => pins.uids.iter().map(|uid| &**uid).eq(uids.iter().copied()),
        _ => false,
    };
    let reached = timeout(SOON, pins.wait_for(wanted)).await;
    reached.unwrap_or_else(|_| panic!("{uids:?} within {SOON:?}")).unwrap();
    start.elapsed()
}

#[tokio::test]
async fn the_folder_may_come_later_and_its_pins_stay_when_it_goes() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("netns");
    let pin = |uid: &str, process: u32| {
        symlink(format!("/proc/{process}/ns/net"), folder.join(uid)).unwrap();
    };
    let own = std::process::id();
    let (mut pins, following) = watch(folder.clone());
    let following = tokio::spawn(following);
    assert!(pins.borrow().is_none());
    std::fs::create_dir(&folder).unwrap();
    until(&mut pins, Some(&[])).await;
    // Told of at once and not at the next look.
    std::fs::write(folder.join("file"), "").unwrap();
    for _ in 0..3 {
        pin("a", own);
        let came = until(&mut pins, Some(&["a"])).await;
        std::fs::remove_file(folder.join("a")).unwrap();
        let went = until(&mut pins, Some(&[])).await;
        if came.max(went) < PERIOD / 2 {
            break;
        }
    }
    pin("a", own);
    pin("b", own);
    until(&mut pins, Some(&["a", "b"])).await;
    assert_eq!(
        pins.borrow().as_ref().unwrap().path("b").unwrap(),
        folder.join("b").display().to_string()
    );
    // Another folder with the same path.
    std::fs::rename(&folder, outer.path().join("old")).unwrap();
    tokio::time::sleep(PERIOD + PERIOD / 2).await;
    until(&mut pins, Some(&["a", "b"])).await;
    std::fs::create_dir(&folder).unwrap();
    pin("c", own);
    until(&mut pins, Some(&["c"])).await;
    pin("d", own);
    until(&mut pins, Some(&["c", "d"])).await;
    drop(pins);
    timeout(SOON, following).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_first_state_is_there_before_anything_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    symlink("/proc/self/ns/net", folder.path().join("a")).unwrap();
    let (pins, _) = watch(folder.path().to_owned());
    assert!(pins.borrow().as_ref().unwrap().uids.contains("a"));
}

#[tokio::test]
async fn to_look_at_the_folder_is_no_news_of_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "").unwrap();
    let mut follower = Follower::new(folder.path().to_owned());
    let told = follower.told.clone();
    for _ in 0..3 {
        follower.look();
    }
    let news = tokio::time::timeout(Duration::from_millis(300), told.notified()).await;
    assert!(news.is_err(), "each look would lead to the next");
    std::fs::write(folder.path().join("b"), "").unwrap();
    tokio::time::timeout(Duration::from_secs(2), told.notified()).await.unwrap();
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use tokio::time::timeout;

use super::*;
use crate::source::folder::testing::{node, write};
use rig::Rig;

mod rig;

#[tokio::test]
async fn a_file_renamed_into_place_is_taken_at_once() {
    let mut rig = Rig::new(&[("a.yaml", &node("x1", 0))]).await;
    let mut times = Vec::new();
    for value in 1..50 {
        write(rig.root(), ".a.yaml.tmp", &node("x1", value));
        let start = Instant::now();
        std::fs::rename(rig.root().join(".a.yaml.tmp"), rig.root().join("a.yaml")).unwrap();
        rig.value("x1", value).await;
        times.push(start.elapsed());
    }
    times.sort();
    // No fixed delay: far below any that one would choose, even on a busy machine.
    assert!(times[times.len() / 2] < Duration::from_millis(50), "{times:?}");
    println!("from rename to update: median {:?}, worst {:?}", times[24], times[48]);
}

#[tokio::test]
async fn files_and_folders_come_and_go() {
    let mut rig = Rig::new(&[]).await;
    write(rig.root(), "a.yaml", &node("x1", 1));
    rig.shows("x1@a.yaml#1").await;
    write(rig.root(), "p/q/b.yaml", &node("x2", 1));
    rig.shows("x1@a.yaml#1 x2@p/q/b.yaml#1").await;
    write(
        rig.root(),
        "p/q/c.json",
        r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"x3"}}"#,
    );
    rig.shows("x1@a.yaml#1 x2@p/q/b.yaml#1 x3@p/q/c.json#1").await;
    std::fs::rename(rig.root().join("p"), rig.root().join("n")).unwrap();
    rig.shows("x1@a.yaml#1 x2@n/q/b.yaml#1 x3@n/q/c.json#1").await;
    write(rig.root(), "n/q/b.yaml", &node("x4", 1));
    rig.shows("x1@a.yaml#1 x3@n/q/c.json#1 x4@n/q/b.yaml#1").await;
    std::fs::remove_dir_all(rig.root().join("n")).unwrap();
    rig.shows("x1@a.yaml#1").await;
    // A folder of an earlier name is watched too.
    write(rig.root(), "n/q/b.yaml", &node("x5", 1));
    rig.shows("x1@a.yaml#1 x5@n/q/b.yaml#1").await;
    write(rig.root(), "n/q/b.yaml", &node("x6", 1));
    rig.shows("x1@a.yaml#1 x6@n/q/b.yaml#1").await;
    std::fs::remove_file(rig.root().join("a.yaml")).unwrap();
    rig.shows("x6@n/q/b.yaml#1").await;
}

#[tokio::test]
async fn a_file_written_in_place_is_read_when_it_is_complete() {
    let mut rig = Rig::new(&[("a.yaml", &(node("x1", 1) + &node("x2", 1)))]).await;
    let mut file = std::fs::File::create(rig.root().join("a.yaml")).unwrap();
    for text in [node("x1", 2), node("x2", 2)] {
        for line in text.split_inclusive('\n') {
            file.write_all(line.as_bytes()).unwrap();
            rig.never_without(&["x1", "x2"], Duration::from_millis(20)).await;
            assert_eq!(rig.taken.value("x1").as_deref(), Some("v1"));
        }
    }
    drop(file);
    rig.value("x2", 2).await;
    rig.value("x1", 2).await;
}

#[tokio::test]
async fn an_editor_that_moves_the_old_file_away_loses_nothing() {
    let mut rig = Rig::new(&[("a.yaml", &node("x1", 1))]).await;
    for value in 2..6 {
        let (path, backup) = (rig.root().join("a.yaml"), rig.root().join("a.yaml~"));
        std::fs::rename(&path, &backup).unwrap();
        rig.never_without(&["x1"], Duration::from_millis(10)).await;
        std::fs::write(&path, node("x1", value)).unwrap();
        std::fs::remove_file(&backup).unwrap();
        rig.value("x1", value).await;
    }
    rig.never_without(&["x1"], Duration::from_millis(300)).await;
}

#[tokio::test]
async fn a_config_map_is_swapped() {
    let mut rig = Rig::new(&[]).await;
    let root = rig.root().to_owned();
    // As the kubelet does it: new data, a link to it renamed into place, then the old data goes.
    for value in 1..8 {
        let data = format!("..2026_{value}");
        write(&root, &format!("{data}/a.yaml"), &node("x1", value));
        write(&root, &format!("{data}/b.yaml"), &node("x2", value));
        symlink(&data, root.join("..data_tmp")).unwrap();
        std::fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
        if value == 1 {
            for name in ["a.yaml", "b.yaml"] {
                symlink(Path::new("..data").join(name), root.join(name)).unwrap();
            }
        } else {
            std::fs::remove_dir_all(root.join(format!("..2026_{}", value - 1))).unwrap();
        }
        rig.value("x1", value).await;
        rig.value("x2", value).await;
        assert_eq!(rig.taken.show(), "x1@a.yaml#1 x2@b.yaml#1");
    }
    assert_eq!(rig.taken.said(), "");
}

#[tokio::test]
async fn garbage_keeps_the_last_good_form_until_it_is_corrected() {
    let mut rig = Rig::new(&[("a.yaml", &node("x1", 1)), ("b.json", "{}")]).await;
    for garbage in [&b"\xff\xfe\0"[..], b"", b"{[", b"words and no more"] {
        std::fs::write(rig.root().join("a.yaml"), garbage).unwrap();
        rig.until(|taken| taken.said().contains("the one object that the file held")).await;
        assert_eq!(rig.taken.show(), "x1@a.yaml#1");
        write(rig.root(), "a.yaml", &node("x1", 1));
        rig.until(|taken| !taken.said().contains("File a.yaml")).await;
    }
    std::fs::remove_file(rig.root().join("a.yaml")).unwrap();
    rig.shows("").await;
}

#[tokio::test]
async fn the_folder_may_go_and_come_back() {
    let mut rig = Rig::new(&[("a.yaml", &node("x1", 1))]).await;
    let away = rig.root().with_extension("away");
    std::fs::rename(rig.root(), &away).unwrap();
    rig.until(|taken| taken.said().contains("the folder of manifests cannot be read")).await;
    rig.never_without(&["x1"], Duration::from_millis(500)).await;
    write(&away, "a.yaml", &node("x1", 2));
    std::fs::rename(&away, rig.root()).unwrap();
    rig.value("x1", 2).await;
    assert_eq!(rig.taken.said(), "");
    // It is watched again.
    write(rig.root(), "b.yaml", &node("x2", 1));
    let start = Instant::now();
    rig.shows("x1@a.yaml#1 x2@b.yaml#1").await;
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn many_changes_at_once_all_arrive() {
    let mut rig = Rig::new(&[]).await;
    let root = rig.root().to_owned();
    let writer = std::thread::spawn(move || {
        for round in 0..5 {
            for file in 0..200 {
                write(
                    &root,
                    &format!("p{}/f{file}.yaml", file % 7),
                    &node(&format!("x{file}"), round),
                );
            }
        }
    });
    rig.until(|taken| {
        taken.objects.len() == 200
            && (0..200).all(|file| taken.value(&format!("x{file}")).as_deref() == Some("v4"))
    })
    .await;
    writer.join().unwrap();
    assert_eq!(rig.taken.said(), "");
}

#[tokio::test]
async fn it_ends_when_nobody_listens() {
    let rig = Rig::new(&[]).await;
    drop(rig.updates);
    timeout(Duration::from_secs(5), rig.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_folder_that_is_none_is_refused_before_anything_starts() {
    let (sender, _updates) = mpsc::channel(1);
    let folder = tempfile::tempdir().unwrap();
    let missing = watch(folder.path().join("none"), sender.clone()).err().unwrap();
    assert!(matches!(missing, FolderError::Missing(_)));
    write(folder.path(), "a.yaml", "");
    let file = watch(folder.path().join("a.yaml"), sender).err().unwrap();
    assert!(matches!(file, FolderError::NotAFolder(_)));
}

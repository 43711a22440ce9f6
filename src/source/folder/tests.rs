#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::testing::{Taken, node, write};
use super::*;

fn loaded(dir: &Path) -> Taken {
    let mut taken = Taken::default();
    taken.update(load(dir).unwrap());
    taken
}

#[test]
fn a_folder_that_cannot_be_used_says_why_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    let error = load(&missing).unwrap_err();
    assert!(matches!(&error, FolderError::Missing(path) if *path == missing));
    assert!(error.to_string().contains("none") && error.to_string().contains("create it"));
    write(folder.path(), "a.yaml", "");
    let error = load(&folder.path().join("a.yaml")).unwrap_err();
    assert!(matches!(error, FolderError::NotAFolder(_)), "{error}");
    let denied = FolderError::of(folder.path(), io::ErrorKind::PermissionDenied.into());
    assert!(matches!(denied, FolderError::Denied(_)));
    assert!(denied.to_string().contains("may not be listed"));
    let other = FolderError::of(folder.path(), io::Error::other("broken disk"));
    assert!(other.to_string().contains("broken disk"));
}

/// Runs a test of this program as a user without rights, on a folder, and gives what it printed.
/// Whoever runs the tests as root may read everything.
fn as_nobody(test: &str, folder: &Path) -> String {
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = place.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(&program);
    command
        .args([test, "--exact", "--nocapture"])
        .env("AETHER_TEST_FOLDER", folder)
        .current_dir("/");
    if std::fs::metadata(&program).unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn without_permission_it_is_said_what_is_missing() {
    if let Some(folder) = std::env::var_os("AETHER_TEST_FOLDER") {
        match load(Path::new(&folder)) {
            Ok(update) => {
                let mut taken = Taken::default();
                taken.update(update);
                println!("{} and {}", taken.show(), taken.said());
            }
            Err(error) => println!("{error}"),
        }
        return;
    }
    let test = "source::folder::tests::without_permission_it_is_said_what_is_missing";
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.yaml", &node("x1", 1));
    write(root, "b.yaml", &node("x2", 1));
    write(root, "sub/c.yaml", &node("x3", 1));
    let mode = |path: &str, mode: u32| {
        std::fs::set_permissions(root.join(path), PermissionsExt::from_mode(mode)).unwrap();
    };
    mode("", 0o755);
    mode("b.yaml", 0);
    mode("sub", 0);
    let said = as_nobody(test, root);
    assert!(said.contains("x1@a.yaml#1 and "), "{said}");
    assert!(said.contains("(b.yaml): the system says: Permission denied"), "{said}");
    assert!(said.contains("sub: it cannot be read (Permission denied"), "{said}");
    mode("", 0o311);
    let said = as_nobody(test, root);
    assert!(said.contains("may not be listed: let the user"), "{said}");
    for path in ["", "sub"] {
        mode(path, 0o755);
    }
}

#[test]
fn an_empty_folder_is_a_state_too() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(loaded(folder.path()), Taken::default());
}

#[test]
fn what_is_broken_costs_itself_alone() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.yaml", &(node("x1", 1) + "---\n[\n" + &node("x2", 1)));
    write(folder.path(), "b.json", "garbage");
    write(folder.path(), "c.yaml", "\0\0\0");
    write(folder.path(), "sub/d.yaml", &node("x3", 1));
    let taken = loaded(folder.path());
    assert_eq!(taken.show(), "x1@a.yaml#1 x2@a.yaml#3 x3@sub/d.yaml#1");
    let said = taken.said();
    for part in ["a.yaml#2", "b.json#1", "c.yaml#1"] {
        assert!(said.contains(part), "{said}");
    }
}

/// JSON and YAML of more than 50 MB.
#[test]
fn large_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let filler = "x".repeat(200_000);
    let mut yaml = String::new();
    let mut items = Vec::new();
    for at in 0..260 {
        let name = format!("y{at}");
        yaml.push_str(&node(&name, 1));
        yaml.extend(["data: ", &filler, "\n"]);
        items.push(format!(
            r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"j{at}"}},"data":"{filler}"}}"#
        ));
    }
    let json = format!(r#"{{"kind":"List","apiVersion":"v1","items":[{}]}}"#, items.join(","));
    assert!(yaml.len() > 50_000_000 && json.len() > 50_000_000);
    write(folder.path(), "a.yaml", &yaml);
    write(folder.path(), "b.json", &json);
    let taken = loaded(folder.path());
    assert_eq!(taken.objects.len(), 520, "{}", taken.said());
    assert_eq!(taken.said(), "");
}

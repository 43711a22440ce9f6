#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

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

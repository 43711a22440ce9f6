#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::source::folder::testing::{Taken, node};
use crate::source::manifest::read;

fn put(table: &mut Table, path: &str, text: &str) {
    table.replace(OsStr::new(path), read(path, text.as_bytes()));
}

fn messages(table: &Table) -> Vec<String> {
    table.findings(|_| false).iter().map(ToString::to_string).collect()
}

#[test]
fn only_what_changed_is_a_change() {
    let (mut table, mut taken) = (Table::default(), Taken::default());
    put(&mut table, "a.yaml", &(node("x1", 1) + &node("x2", 1)));
    assert_eq!(taken.take(table.take_changes()), 2);
    put(&mut table, "a.yaml", &(node("x1", 1) + &node("x2", 2)));
    assert_eq!(taken.take(table.take_changes()), 1);
    put(&mut table, "a.yaml", &(node("x1", 1) + &node("x2", 2) + "# comment"));
    assert_eq!(taken.take(table.take_changes()), 0);
    // Away and back before anyone looked is no change.
    table.remove(OsStr::new("a.yaml"));
    put(&mut table, "a.yaml", &(node("x1", 1) + &node("x2", 2)));
    assert_eq!(taken.take(table.take_changes()), 0);
    put(&mut table, "a.yaml", &node("x1", 1));
    assert_eq!(taken.take(table.take_changes()), 1);
    assert_eq!(taken.show(), "x1@a.yaml#1");
    table.remove(OsStr::new("a.yaml"));
    assert_eq!(taken.take(table.take_changes()), 1);
    assert!(table.claims.is_empty() && messages(&table).is_empty());
}

#[test]
fn the_later_path_counts_and_the_earlier_comes_back() {
    let (mut table, mut taken) = (Table::default(), Taken::default());
    put(&mut table, "b.yaml", &node("x1", 1));
    taken.take(table.take_changes());
    put(&mut table, "a.yaml", &node("x1", 2));
    assert_eq!(taken.take(table.take_changes()), 0);
    assert_eq!(taken.show(), "x1@b.yaml#1");
    let found = messages(&table);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("problem DuplicateObject: Node x1 (a.yaml#1)"), "{found:?}");
    assert!(found[0].contains("another form in b.yaml#1"), "{found:?}");
    put(&mut table, "a.yaml", &node("x1", 1));
    assert!(messages(&table)[0].starts_with("warning"));
    assert!(table.findings(|path| path == "b.yaml").is_empty());
    put(&mut table, "c.yaml", &node("x1", 3));
    assert_eq!(taken.take(table.take_changes()), 1);
    assert_eq!(taken.show(), "x1@c.yaml#1");
    table.remove(OsStr::new("c.yaml"));
    table.remove(OsStr::new("b.yaml"));
    assert_eq!(taken.take(table.take_changes()), 1);
    assert_eq!(taken.show(), "x1@a.yaml#1");
    assert!(messages(&table).is_empty());
}

#[test]
fn paths_are_ordered_by_their_bytes() {
    let mut taken = Taken::default();
    let mut table = Table::default();
    // '-' comes before '/' though a folder's name alone would come first.
    put(&mut table, "a-b.yaml", &node("x1", 1));
    put(&mut table, "a/b.yaml", &node("x1", 2));
    taken.take(table.take_changes());
    assert_eq!(taken.show(), "x1@a/b.yaml#1");
}

#[test]
fn twice_in_one_file_the_later_counts() {
    let (mut table, mut taken) = (Table::default(), Taken::default());
    put(&mut table, "a.yaml", &(node("x1", 1) + &node("x1", 2)));
    assert_eq!(taken.take(table.take_changes()), 1);
    assert_eq!(taken.show(), "x1@a.yaml#2");
    assert!(messages(&table)[0].contains("(a.yaml#1)"));
}

#[test]
fn the_last_good_form_is_kept_while_the_file_is_there() {
    let both = node("x1", 1) + &node("x2", 1);
    let broken_object = "---\napiVersion: v1\nkind: Node\nmetadata: {name: x1, labels: 7}\n";
    let table_of: &[(&str, &str, &str, &str)] = &[
        // what comes, what is held then, what is said
        ("\0\u{1}garbage: [", "x1@a.yaml#1 x2@a.yaml#2", "2 objects", "File"),
        ("", "x1@a.yaml#1 x2@a.yaml#2", "the file is empty, so the 2 objects", "File"),
        ("# gone\n", "", "", ""),
        (broken_object, "x1@a.yaml#1", "last good form is kept", "metadata.labels"),
        (
            &(broken_object.to_owned() + &node("x2", 2)),
            "x1@a.yaml#1 x2@a.yaml#2",
            "is kept",
            "Node x1",
        ),
        (&(node("x2", 2) + "---\n{"), "x1@a.yaml#1 x2@a.yaml#1", "the one object", "a.yaml#2"),
        (
            "kind: Node\nmetadata: {name: x1}",
            "x1@a.yaml#1 x2@a.yaml#2",
            "no apiVersion",
            "2 objects",
        ),
        (
            "apiVersion: v1\nkind: Node",
            "x1@a.yaml#1 x2@a.yaml#2",
            "it has no name, so the 2",
            "Node",
        ),
        ("apiVersion: v1\nkind: Pod", "", "it has no name;", "Pod"),
    ];
    for (text, held, said, also) in table_of {
        let (mut table, mut taken) = (Table::default(), Taken::default());
        put(&mut table, "a.yaml", &both);
        taken.take(table.take_changes());
        for _ in 0..2 {
            put(&mut table, "a.yaml", text);
            taken.take(table.take_changes());
            assert_eq!(taken.show(), *held, "{text:?}");
            let found = messages(&table).join("\n");
            assert!(found.contains(said) && found.contains(also), "{text:?}: {found}");
        }
        put(&mut table, "a.yaml", &node("x1", 3));
        taken.take(table.take_changes());
        assert_eq!(taken.show(), "x1@a.yaml#1");
        assert!(messages(&table).is_empty());
        put(&mut table, "a.yaml", text);
        table.remove(OsStr::new("a.yaml"));
        taken.take(table.take_changes());
        assert_eq!(taken.show(), "");
        assert!(messages(&table).is_empty());
    }
}

#[test]
fn what_was_never_good_is_left_out() {
    let (mut table, mut taken) = (Table::default(), Taken::default());
    put(&mut table, "a.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: x1, labels: 7}\n");
    put(&mut table, "b.yaml", "{");
    put(&mut table, "c.yaml", "");
    assert_eq!(taken.take(table.take_changes()), 0);
    let found = messages(&table);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|text| text.contains("the object is left out")), "{found:?}");
}

/// A file, and the objects in it, or none where it is removed.
type Edit = (usize, Option<Vec<(usize, u32)>>);

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let content =
        proptest::option::weighted(0.8, proptest::collection::vec((0usize..5, 0u32..3), 0..5));
    proptest::collection::vec((0usize..4, content), 1..30)
}

fn text(objects: &[(usize, u32)]) -> String {
    let text: String =
        objects.iter().map(|(name, value)| node(&format!("x{name}"), *value)).collect();
    text + "# end\n"
}

proptest! {
    #[test]
    fn any_edits_end_where_a_fresh_read_begins(edits in edits(), pause in proptest::collection::vec(any::<bool>(), 30)) {
        let paths = ["a.yaml", "b.yaml", "c/a.yaml", "c.yaml"];
        let (mut table, mut taken) = (Table::default(), Taken::default());
        let mut last = BTreeMap::new();
        for (step, (path, content)) in edits.into_iter().enumerate() {
            match &content {
                Some(objects) => put(&mut table, paths[path], &text(objects)),
                None => table.remove(OsStr::new(paths[path])),
            }
            last.insert(path, content);
            if pause[step] {
                taken.take(table.take_changes());
            }
        }
        taken.take(table.take_changes());
        let (mut fresh, mut expected) = (Table::default(), Taken::default());
        for (path, content) in last.into_iter().rev() {
            if let Some(objects) = content {
                put(&mut fresh, paths[path], &text(&objects));
            }
        }
        expected.take(fresh.take_changes());
        prop_assert_eq!(&taken, &expected);
        prop_assert_eq!(messages(&table), messages(&fresh));
        prop_assert_eq!(table.take_changes().len(), 0);
    }
}

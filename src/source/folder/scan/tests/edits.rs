//! Whatever is done to the files, and whenever they are looked at, the end is the same.

use proptest::prelude::*;

use super::*;
use crate::source::folder::load;

#[derive(Debug, Clone)]
enum Edit {
    Write(usize, Vec<(usize, u32)>),
    Replace(usize, Vec<(usize, u32)>),
    Remove(usize),
    RenameFile(usize, usize),
    RenameFolder(usize, usize),
    RemoveFolder(usize),
    Look,
    Wait,
}

const FOLDERS: [&str; 3] = ["p", "q", "p/r"];

fn path(file: usize) -> String {
    let folder = ["", "p/", "q/", "p/r/"][file % 4];
    format!("{folder}{}.yaml", ["a", "b"][file / 4])
}

fn edit() -> impl Strategy<Value = Edit> {
    let objects = || proptest::collection::vec((0usize..5, 0u32..3), 0..4);
    prop_oneof![
        3 => (0usize..8, objects()).prop_map(|(file, objects)| Edit::Write(file, objects)),
        3 => (0usize..8, objects()).prop_map(|(file, objects)| Edit::Replace(file, objects)),
        2 => (0usize..8).prop_map(Edit::Remove),
        1 => (0usize..8, 0usize..8).prop_map(|(from, to)| Edit::RenameFile(from, to)),
        1 => (0usize..3, 0usize..3).prop_map(|(from, to)| Edit::RenameFolder(from, to)),
        1 => (0usize..3).prop_map(Edit::RemoveFolder),
        3 => Just(Edit::Look),
        2 => Just(Edit::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_edits_end_where_a_fresh_read_begins(edits in proptest::collection::vec(edit(), 1..25)) {
        let mut rig = Rig::new();
        let text = |objects: &[(usize, u32)]| {
            objects.iter().map(|(name, value)| node(&format!("x{name}"), *value)).collect::<String>() + "# end\n"
        };
        for edit in edits {
            let root = rig.root().to_owned();
            match edit {
                Edit::Write(file, objects) => write(&root, &path(file), &text(&objects)),
                Edit::Replace(file, objects) => {
                    write(&root, &path(file), "");
                    write(&root, ".new", &text(&objects));
                    std::fs::rename(root.join(".new"), root.join(path(file))).unwrap();
                }
                Edit::Remove(file) => drop(std::fs::remove_file(root.join(path(file)))),
                Edit::RenameFile(from, to) => {
                    drop(std::fs::rename(root.join(path(from)), root.join(path(to))));
                }
                Edit::RenameFolder(from, to) => {
                    drop(std::fs::rename(root.join(FOLDERS[from]), root.join(FOLDERS[to])));
                }
                Edit::RemoveFolder(folder) => drop(std::fs::remove_dir_all(root.join(FOLDERS[folder]))),
                Edit::Look => drop(rig.scan()),
                Edit::Wait => drop(rig.wait(Duration::from_millis(60))),
            }
        }
        rig.scan();
        rig.now += GRACE;
        rig.scan();
        let mut fresh = Taken::default();
        fresh.update(load(rig.root()).unwrap());
        prop_assert_eq!(&rig.taken.objects, &fresh.objects);
        prop_assert_eq!(rig.taken.said(), fresh.said());
    }
}

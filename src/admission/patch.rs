//! The decision as operations on the pod as it came: `add` where something is missing, one `move`
//! of our own container, and a `test` before it. Nothing that is there is written over.
//!
//! Comparing two whole pods would find more to do than there is: a container that is put in front
//! moves all others, and a comparison rewrites each.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, MoveOperation, Patch, PatchOperation, TestOperation};
use serde_json::{Map, Value, json};

use super::decide::{Decision, GateStep, Managed, Place};
use super::keys;
use crate::index::MANAGED;

/// The operations that make of this pod what was decided on it; none where it is that already.
pub fn patch(decision: &Decision, pod: &Value) -> Patch {
    let Decision::Managed(managed) = decision else { return Patch(Vec::new()) };
    let mut operations = Operations { pod, list: Vec::new() };
    operations.managed(managed);
    Patch(operations.list)
}

struct Operations<'a> {
    pod: &'a Value,
    list: Vec<PatchOperation>,
}

impl Operations<'_> {
    fn managed(&mut self, managed: &Managed) {
        if managed.add_label {
            self.insert(&["metadata", "labels"], MANAGED, json!("true"));
        }
        let options = managed.resolver.add.iter();
        let options = options.map(|option| json!({ "name": option.name, "value": option.value }));
        self.append(&["spec", "dnsConfig"], "options", options.collect());
        if let GateStep::Present { container, volume } = &managed.gate {
            self.append(&["spec"], "volumes", volume.iter().cloned().collect());
            self.container(container);
        }
    }

    fn container(&mut self, place: &Place) {
        const LIST: [&str; 2] = ["spec", "initContainers"];
        match place {
            Place::Keep => {}
            Place::Add(container) => match self.find(&LIST) {
                Some(Value::Array(_)) => {
                    let first = pointer(LIST.into_iter().chain(["0"]));
                    self.add(first, container.clone());
                }
                _ => self.insert(&["spec"], "initContainers", json!([container])),
            },
            // What is moved is said first, so that nothing else ever is.
            Place::MoveFrom(index) => {
                let index = index.to_string();
                let from = pointer(LIST.into_iter().chain([&*index]));
                let name = pointer(LIST.into_iter().chain([&*index, "name"]));
                self.list.push(PatchOperation::Test(TestOperation {
                    path: name,
                    value: json!(keys::GATE_CONTAINER),
                }));
                self.list.push(PatchOperation::Move(MoveOperation {
                    from,
                    path: pointer(LIST.into_iter().chain(["0"])),
                }));
            }
        }
    }

    /// Puts values at the end of a list, which is made where there is none.
    fn append(&mut self, parent: &[&str], key: &str, values: Vec<Value>) {
        if values.is_empty() {
            return;
        }
        let path = || parent.iter().copied().chain([key]);
        match self.find(&path().collect::<Vec<_>>()) {
            Some(Value::Array(_)) => {
                for value in values {
                    self.add(pointer(path().chain(["-"])), value);
                }
            }
            _ => self.insert(parent, key, Value::Array(values)),
        }
    }

    /// Puts a value under a key of a map. The maps on the way that are missing are made with it: an
    /// `add` below a map that is not there fails, and one of a map that is there would wipe it.
    fn insert(&mut self, parent: &[&str], key: &str, value: Value) {
        let missing = (1..=parent.len()).find(|depth| {
            !matches!(self.find(parent.get(..*depth).unwrap_or_default()), Some(Value::Object(_)))
        });
        let Some(depth) = missing else {
            return self.add(pointer(parent.iter().copied().chain([key])), value);
        };
        let below = parent.iter().skip(depth).copied().chain([key]).rev();
        let value = below
            .fold(value, |value, key| Value::Object(Map::from_iter([(key.to_owned(), value)])));
        self.add(pointer(parent.iter().take(depth).copied()), value);
    }

    fn add(&mut self, path: PointerBuf, value: Value) {
        self.list.push(PatchOperation::Add(AddOperation { path, value }));
    }

    fn find(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self.pod, |value, key| value.get(key))
    }
}

/// A JSON pointer; `/` and `~` in a key are escaped.
fn pointer<'a>(tokens: impl IntoIterator<Item = &'a str>) -> PointerBuf {
    PointerBuf::from_tokens(tokens)
}

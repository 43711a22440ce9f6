//! A world from a seed.

use std::path::Path;

use anyhow::Result;
use it::world::{Object, World};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::parts::{self, Shape, set};
use super::strategies::{LONG, Setting, maybe, nodes, one_of};

/// The pod whose Envoys follow from world to world. It is in all of them.
pub const CALLER: &str = "pod/shop/caller";
/// Another one, which is in all of them too: its name and its namespace's are as long as may be (63 and 253).
pub const OTHER_CALLER: &str = "pod/n23456789-123456789-123456789-123456789-123456789-123456789-123/\
    p23456789-123456789-123456789-123456789-123456789-123456789-123.\
    p23456789-123456789-123456789-123456789-123456789-123456789-123.\
    p23456789-123456789-123456789-123456789-123456789-123456789-123.\
    p23456789-123456789-123456789-123456789-123456789-123456789-1";

/// The names of the files of a world. All worlds have the same, so that one takes the other's place.
const FILES: [&str; 3] = ["0.yaml", "1.json", "2.yml"];

/// A world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The texts of its files.
    files: [String; 3],
}

/// What a world is drawn as.
#[derive(Debug, Clone)]
struct Draw {
    services: Vec<Shape>,
    pods: Vec<Object>,
    callers: Vec<Object>,
    nodes: Vec<Object>,
    scattered: bool,
    twice: bool,
    broken: bool,
}

impl Generated {
    /// The world of this seed: the same each time.
    pub fn of(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        draws().new_tree(&mut runner).unwrap().current().world(seed)
    }

    /// Puts it in place of what is in this folder, file by file, while somebody looks.
    pub fn put(&self, world: &World) -> Result<()> {
        FILES.iter().zip(&self.files).try_for_each(|(file, text)| world.put_text(file, text))
    }

    /// Keeps it in this folder, to look at.
    pub fn keep(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut files = FILES.iter().zip(&self.files);
        files.try_for_each(|(file, text)| Ok(std::fs::write(folder.join(file), text)?))
    }
}

fn draws() -> impl Strategy<Value = Draw> {
    // None at all, some, and hundreds.
    let count = prop_oneof![4 => Just(0), 60 => 1..12usize, 10 => 12..60usize, 2 => 400..700usize];
    let services = count.prop_flat_map(|count| proptest::collection::vec(parts::services(), count));
    let pods = proptest::collection::vec(parts::pods(), 0..8);
    let nodes = proptest::collection::vec(node(), 4);
    let rare = proptest::bool::weighted(0.2);
    (services, pods, callers(), nodes, any::<bool>(), rare, proptest::bool::weighted(0.2)).prop_map(
        |(services, pods, callers, nodes, scattered, twice, broken)| Draw {
            services,
            pods,
            callers,
            nodes: nodes.into_iter().flatten().collect(),
            scattered,
            twice,
            broken,
        },
    )
}

/// The two callers, somewhere, with addresses of either family or both.
fn callers() -> impl Strategy<Value = Vec<Object>> {
    let families: BoxedStrategy<&[&str]> =
        one_of(&[&["10.244.9.1"][..], &["10.244.9.1", "fd00:10:244::9:1"], &["fd00:10:244::9:1"]]);
    (nodes(), families, any::<bool>()).prop_map(|(node, families, scheduled)| {
        let ips: Vec<_> = families.iter().map(|ip| ip.parse().unwrap()).collect();
        let pod = |id: &str| {
            let (namespace, name) = id.strip_prefix("pod/").unwrap().split_once('/').unwrap();
            let pod = Object::pod(namespace, name, &node, &ips);
            if scheduled { pod } else { pod.with(&["spec", "nodeName"], serde_json::Value::Null) }
        };
        vec![pod(CALLER), pod(OTHER_CALLER)]
    })
}

fn node() -> impl Strategy<Value = Option<Object>> {
    let zones = one_of(&["a", "b", "zürich", LONG, ""]);
    let settings: Vec<BoxedStrategy<Option<Setting>>> =
        vec![maybe(1, &["metadata", "labels"], Just(serde_json::Value::Null).boxed())];
    let node = (nodes(), one_of(&["eu", "us", ""]), zones, settings).prop_map(
        |(name, region, zone, settings)| set(Object::node(&name, region, zone), settings),
    );
    proptest::option::weighted(0.8, node)
}

impl Draw {
    fn world(self, seed: u64) -> Generated {
        let numbered = self.services.len() > 60;
        let mut files: [Vec<Object>; 3] = Default::default();
        files[0].extend(self.callers);
        let mut rest = Vec::new();
        rest.extend(["shop", "pay"].map(Object::namespace));
        rest.extend(self.nodes.into_iter().chain(self.pods));
        for (n, shape) in self.services.into_iter().enumerate() {
            rest.extend(shape.objects(n, numbered));
        }
        if self.twice
            && let Some(object) = rest.last()
        {
            files[2].push(object.clone().annotation("example.com/note", "another form"));
        }
        if self.broken {
            // Its name is this world's alone: of an object that was good the last good form is kept.
            let broken = Object::service("shop", &format!("broken-{seed}"), "10.96.250.1");
            files[2].push(broken.with(&["spec", "ports"], "eighty"));
        }
        for (n, object) in rest.into_iter().enumerate() {
            files[if self.scattered { n % 3 } else { usize::from(numbered) }].push(object);
        }
        let mut files = files.iter();
        let [a, b, c] =
            [false, true, false].map(|json| text(files.next().map_or(&[], |of| of), json));
        Generated { files: [a, b, c] }
    }
}

/// Documents, or a list. A file without objects says so: an empty one would keep what it held.
fn text(objects: &[Object], json: bool) -> String {
    let values: Vec<String> = objects.iter().map(|object| object.value().to_string()).collect();
    if json {
        return format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{}]}}",
            values.join(",\n")
        );
    }
    format!("# {} objects\n{}\n", objects.len(), values.join("\n---\n"))
}

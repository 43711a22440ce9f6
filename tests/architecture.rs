//! The rules of who may know whom, held over the text of `src/`, and the types that the descriptor
//! set has to know.
//!
//! `model` imports neither kube nor tonic nor tokio; `index` and `translate` never await; `xds`
//! knows no other part and no resource type of Envoy; only `run` knows every part. Tests inside
//! the modules are free.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice
)]

#[path = "architecture/scan.rs"]
mod scan;

use std::path::{Path, PathBuf};

use scan::{has_word, paths_after, without_comments, without_tests};

/// The parts that each part may name. `run` may name all; a part that is not here must be added.
const MAY_NAME: [(&str, &[&str]); 22] = [
    ("model", &[]),
    ("random", &[]),
    ("health", &[]),
    ("api", &[]),
    ("descriptors", &[]),
    ("dns", &["model", "health"]),
    ("identity", &[]),
    ("xds", &[]),
    ("status", &["descriptors", "xds"]),
    ("index", &["model"]),
    ("leader", &["health", "api"]),
    ("permissions", &["health"]),
    ("generate", &["model", "api", "index", "leader"]),
    ("events", &["model", "index", "leader"]),
    ("source", &["model", "health", "api", "index"]),
    ("translate", &["model", "xds"]),
    ("capture", &["model", "index", "source", "translate", "xds"]),
    ("explain", &["model", "index", "translate", "xds", "dns"]),
    ("admin", &["health"]),
    ("admission", &["model", "health", "api", "index", "leader"]),
    // The commands read settings and results; what is to be done they leave to `run`.
    (
        "cli",
        &[
            "model",
            "xds",
            "index",
            "leader",
            "translate",
            "explain",
            "descriptors",
            "admission",
            "dns",
            "identity",
            "status",
            "run",
        ],
    ),
    (
        "run",
        &[
            "model",
            "health",
            "index",
            "source",
            "translate",
            "xds",
            "capture",
            "explain",
            "leader",
            "permissions",
            "generate",
            "events",
            "admin",
            "admission",
            "cli",
            "descriptors",
            "dns",
            "identity",
            "status",
        ],
    ),
];

/// Words that must not stand in a part.
const NEVER: [(&str, &[&str]); 5] = [
    ("model", &["kube", "k8s_openapi", "tonic", "tokio", "envoy_types", "async", "await"]),
    ("index", &["async", "await", "tokio", "tonic", "envoy_types"]),
    ("translate", &["async", "await", "tokio", "tonic", "k8s_openapi"]),
    ("explain", &["async", "await", "tokio", "tonic", "kube", "k8s_openapi"]),
    ("xds", &["k8s_openapi"]),
];

/// Packages of Envoy's resource types, none of which `xds` names: to it they are bytes.
const RESOURCE_PACKAGES: [&str; 7] = [
    "config::bootstrap",
    "config::cluster",
    "config::endpoint",
    "config::listener",
    "config::route",
    "data",
    "extensions",
];

/// A file longer than this holds more than one concept.
const LONGEST: usize = 300;

/// Every source file, with the part that it belongs to.
fn sources() -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inside = path.strip_prefix(&root).unwrap();
                let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((first.trim_end_matches(".rs").to_owned(), inside.to_owned(), text));
            }
        }
    }
    assert!(files.len() > 30, "only {} files were found", files.len());
    files
}

/// The code that is not a test's.
fn code(path: &Path, text: &str) -> String {
    let of_tests = path.components().any(|part| {
        let part = part.as_os_str();
        part == "tests" || part == "tests.rs"
    });
    if of_tests { String::new() } else { without_tests(&without_comments(text)) }
}

/// What a part names that it may not.
fn broken(part: &str, code: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if let Some((_, allowed)) = MAY_NAME.iter().find(|(name, _)| *name == part) {
        // From a file of a part, `super::super` can mean the crate.
        let starts = ["crate::", "super::super::"].into_iter();
        for path in starts.flat_map(|start| paths_after(code, start)) {
            let named = path.split("::").next().unwrap_or_default();
            let known = MAY_NAME.iter().any(|(name, _)| *name == named);
            if known && named != part && !allowed.contains(&named) {
                broken.push(format!("names crate::{named}"));
            }
        }
    }
    for (_, words) in NEVER.iter().filter(|(name, _)| *name == part) {
        let found = words.iter().filter(|word| has_word(code, word));
        broken.extend(found.map(|word| format!("holds the word {word}")));
    }
    if part == "xds" {
        for path in paths_after(code, "envoy::") {
            let package = RESOURCE_PACKAGES.iter().find(|package| path.starts_with(**package));
            broken.extend(package.map(|package| format!("names a type of envoy::{package}")));
        }
    }
    broken
}

#[test]
fn parts_name_what_they_may() {
    let mut all = Vec::new();
    for (part, path, text) in sources() {
        if matches!(part.as_str(), "lib" | "main" | "bin") {
            continue;
        }
        let listed = MAY_NAME.iter().any(|(name, _)| *name == part);
        assert!(listed, "say in MAY_NAME which parts {part} may name");
        let broken = broken(&part, &code(&path, &text));
        all.extend(broken.into_iter().map(|what| format!("src/{}: {what}", path.display())));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn main_only_parses_and_calls() {
    let (_, path, text) = sources().into_iter().find(|(part, ..)| part == "main").unwrap();
    let code = code(&path, &text);
    assert!(code.lines().count() < 20 && code.contains("aether::cli"), "{code}");
}

#[test]
fn a_file_holds_one_concept() {
    let long = sources().into_iter().map(|(_, path, text)| (text.lines().count(), path));
    let long: Vec<_> = long.filter(|(lines, _)| *lines > LONGEST).collect();
    assert!(long.is_empty(), "longer than {LONGEST} lines: {long:?}");
}

/// The package and, where it is named at the top level, the message of a path such as
/// `envoy::config::core::v3::Node`.
fn message_of(path: &str) -> Option<(String, Option<String>)> {
    let segments: Vec<_> = path.split("::").collect();
    let version = segments.iter().position(|segment| segment.starts_with('v'))?;
    let message = segments.get(version + 1).filter(|s| s.starts_with(char::is_uppercase));
    Some((segments[..=version].join("."), message.map(|message| (*message).to_owned())))
}

#[test]
fn every_type_that_the_code_names_can_be_put_into_json() {
    let pool = aether::descriptors::pool().unwrap();
    let mut seen = 0;
    for (_, path, text) in sources() {
        let code = code(&path, &text).replace("r#", "");
        for path in paths_after(&code, "envoy_types::pb::") {
            let Some((package, message)) = message_of(&path) else { continue };
            let known = pool.files().any(|file| file.package_name() == package);
            assert!(known, "no file of {package} is in proto/roots.txt");
            let name = format!("{package}.{}", message.unwrap_or_default());
            let known = pool.get_message_by_name(&name).is_some()
                || pool.get_enum_by_name(&name).is_some()
                || name.ends_with('.');
            assert!(known, "the file of {name} is not in proto/roots.txt");
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} types were found");
    let path = "envoy::config::core::v3::Node".to_owned();
    let expected = ("envoy.config.core.v3".to_owned(), Some("Node".to_owned()));
    assert_eq!(message_of(&path), Some(expected));
}

#[test]
fn each_rule_can_fail() {
    let table = [
        ("model", "use tokio::sync::watch;", "tokio"),
        ("model", "use crate::index::Index;", "crate::index"),
        ("model", "fn f() -> k8s_openapi::Resource {}", "k8s_openapi"),
        ("index", "pub async fn f() {}", "async"),
        ("index", "use crate::{\n    model::Key,\n    xds::{self, View},\n};", "crate::xds"),
        ("translate", "let a = b\n    .await;", "await"),
        ("xds", "use crate::model::Finding;", "crate::model"),
        ("xds", "use super::super::model::Finding;", "crate::model"),
        ("xds", "use envoy_types::pb::envoy::config::route::v3::Route;", "envoy::config"),
        (
            "xds",
            "use envoy_types::pb::envoy::{\n  config::{core::v3::Node, route::v3::Route} };",
            "route",
        ),
        ("xds", "use envoy_types::pb::envoy::{service::X, extensions::Y};", "envoy::extensions"),
        ("cli", "crate::source::folder::load()", "crate::source"),
        ("cli", "use crate::capture;", "crate::capture"),
    ];
    for (part, text, expected) in table {
        let found = broken(part, &code(Path::new("x/y.rs"), text)).join(", ");
        assert!(found.contains(expected), "{part}: {text}: {found:?}");
    }
}

#[test]
fn what_is_allowed_is_not_found() {
    let table = [
        ("model", "//! [`tokio`] and crate::index\n/* tonic */ struct Tokio;"),
        ("model", "let a = \"await\"; // tokio"),
        ("model", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::index::Index;\n}\n"),
        ("index", "let asynchronous = 1; use crate::model::{Key, Port};"),
        ("translate", "use crate::{model::Port, xds};"),
        ("xds", "use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;"),
        ("xds", "use envoy_types::pb::envoy::{config::core::v3::Node, service::discovery::v3::A};"),
        ("run", "use crate::{cli, capture, source::folder};"),
    ];
    for (part, text) in table {
        let found = broken(part, &code(Path::new("x/y.rs"), text));
        assert!(found.is_empty(), "{part}: {text}: {found:?}");
    }
    // Tests in files of their own are as free as those inside.
    assert_eq!(code(Path::new("model/tests.rs"), "use tokio::time;"), "");
}

//! Every statement of what the server must do has a test that is named after it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The statements, in the order of their numbers from 1 on.
const STATEMENTS: [&str; 32] = [
    "both protocols, aggregated and by type",
    "empty and unknown types",
    "the node in the first request",
    "nonces of a stream",
    "types and names of a response",
    "acknowledgements and refusals",
    "stale nonces",
    "names added and dropped",
    "absent names",
    "whole state and changes",
    "empty wildcards",
    "what is a wildcard",
    "the legacy wildcard of delta",
    "initial versions",
    "names subscribed again, and absent ones",
    "changes of subscription in mid-stream",
    "removals from what was sent",
    "versions from content",
    "the order of types",
    "clusters and their endpoints",
    "one answer set, one snapshot",
    "virtual hosts",
    "clusters on demand",
    "slow streams",
    "the end of a stream",
    "large requests and responses",
    "keepalive, age and shutdown",
    "many proxies at once",
    "shared bytes",
    "equal content",
    "client status",
    "reflection and health",
];

/// The functions that are tests: an attribute that ends in `test` or `test(…)`, then the name.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut test = false;
    text.lines().map(str::trim).filter_map(move |line| {
        if line.starts_with("#[") {
            test |= line.trim_end_matches(']').split('(').next()?.ends_with("test");
            return None;
        }
        let name = line.split_once("fn ").and_then(|(_, rest)| rest.split('(').next());
        name.filter(|_| std::mem::take(&mut test))
    })
}

/// The numbers at the front of a name: 1 and 5 of `s01_s05_both_protocols`.
fn numbers(name: &str) -> impl Iterator<Item = usize> {
    let parts = name.split('_').map_while(|part| {
        let digits = part.strip_prefix('s').filter(|digits| digits.len() == 2)?;
        digits.parse().ok()
    });
    parts.collect::<Vec<_>>().into_iter()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_statement_has_a_test_that_is_named_after_it() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut held = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        held.extend(tests(&text).flat_map(numbers));
    }
    let missing: Vec<_> =
        (1..).zip(STATEMENTS).filter(|(number, _)| !held.contains(number)).collect();
    assert!(missing.is_empty(), "no test is named after {missing:?}");
    let strange: Vec<_> = held.iter().filter(|n| !(1..=STATEMENTS.len()).contains(*n)).collect();
    assert!(strange.is_empty(), "tests are named after {strange:?}, which are no statements");
}

#[test]
fn only_tests_count_and_all_their_numbers_do() {
    let text = "fn s01_no_test() {}\n#[test]\nfn s02_s03_yes() {}\n#[tokio::test(flavor = \"x\")]\n\
                async fn s04_too() {}\nfn s05_no_test() {}\n#[test]\n#[ignore]\nfn s_none_s06() {}";
    let found: Vec<_> = tests(text).flat_map(numbers).collect();
    assert_eq!(found, [2, 3, 4]);
}

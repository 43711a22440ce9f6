//! The dump of a cluster with two sample applications, and a namespace `edge` with a Service of each shape. What each
//! shape becomes, what `check` says of it, and that a pod reaches it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod reached;
mod shapes;

use std::path::PathBuf;

use serde_json::Value;

/// The folder with the dump.
fn manifests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("worlds")
}

/// A pod of the namespace `edge` in the zone `eu-west-a`.
const CALLER: &str = "pod/edge/generated-6bf45c84fb-sbjgz";

/// The findings as `check --json` prints them.
fn findings() -> Vec<Value> {
    let folder = manifests();
    let done = it::aether::run(&["check", "--json", "--manifests", folder.to_str().unwrap()]);
    let done = done.unwrap();
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let lines = String::from_utf8(done.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn check_says_of_each_shape_what_is_wrong_and_what_to_do() {
    let findings = findings();
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    let of_services = |finding: &&Value| finding["kind"] == "Service";
    let about: Vec<String> =
        findings.iter().filter(of_services).map(|finding| text(finding, "name")).collect();
    // Those and no others: nothing is wrong with the sample applications.
    assert_eq!(about, ["renamed", "twin", "external", "headless", "udp"]);
    for (name, severity, reason, field, words, way_out) in [
        (
            "twin",
            "problem",
            "ConflictingKey",
            "metadata.annotations[aether.io/service]",
            &["edge/mixed", "Service edge/mixed holds", "as its own", "nothing of it is served"][..],
            "another name with the annotation aether.io/service",
        ),
        (
            "renamed",
            "problem",
            "LostShortName",
            "metadata.annotations[aether.io/service]",
            &["reviews.aether.internal", "bookinfo/reviews", "as reviews.edge.aether.internal"],
            "use the qualified name",
        ),
        (
            "headless",
            "warning",
            "NotCaptured",
            "spec.clusterIP",
            &["headless Service has no address", "no mesh name", "headless.edge.svc.cluster.local"],
            "give it a ClusterIP",
        ),
        (
            "external",
            "warning",
            "NotCaptured",
            "spec.type",
            &["ExternalName", "db.example.com", "claims no name"],
            "remove its label aether.io/mesh-service",
        ),
        (
            "udp",
            "warning",
            "NotCaptured",
            "spec.ports",
            &["53 (UDP)", "TCP alone is captured", "as without the mesh"],
            "nothing is to be done",
        ),
    ] {
        let found = findings.iter().find(|f| of_services(f) && f["name"] == name).unwrap();
        assert_eq!(text(found, "namespace"), "edge");
        assert_eq!(text(found, "severity"), severity, "{name}");
        assert_eq!(text(found, "reason"), reason, "{name}");
        assert_eq!(text(found, "field"), field, "{name}");
        assert!(text(found, "origin").starts_with("three-apps.yaml#1.items["), "{found}");
        for word in words {
            assert!(text(found, "message").contains(word), "{name}: {word:?} in {found}");
        }
        assert!(text(found, "wayOut").contains(way_out), "{name}: {found}");
    }
    // The sample applications' pods were made before their namespaces were in the mesh.
    let mut others = findings.iter().filter(|finding| !of_services(finding));
    assert!(others.all(|one| one["reason"] == "Unmanaged" && one["namespace"] != "edge"));
}

#[test]
fn check_in_words_has_a_line_for_each_and_a_sum() {
    let folder = manifests();
    let done = it::aether::run(&["check", "--manifests", folder.to_str().unwrap()]).unwrap();
    let (lines, sum) =
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!(lines.lines().count(), findings().len());
    let starts = |start: &str| lines.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(
        starts("problem ConflictingKey: Service edge/twin (three-apps.yaml#1.items["),
        1,
        "{lines}"
    );
    assert_eq!(starts("problem LostShortName: Service edge/renamed (three-apps.yaml#1.items["), 1);
    assert_eq!((starts("problem "), starts("warning ")), (2, lines.lines().count() - 2));
    assert!(
        sum.starts_with("2 problems, ") && sum.contains("23 mesh services and 8 managed pods"),
        "{sum}"
    );
}

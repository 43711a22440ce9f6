#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;

mod mistakes;
mod properties;

fn ids(manifest: &Manifest) -> Vec<String> {
    manifest.objects.iter().map(|parsed| parsed.id.object_ref().to_string()).collect()
}

fn origins(manifest: &Manifest) -> Vec<&str> {
    manifest.objects.iter().map(|parsed| &*parsed.origin).collect()
}

/// Origin, field and message of each problem.
fn problems(manifest: &Manifest) -> Vec<(&str, &str, &str)> {
    manifest
        .problems
        .iter()
        .map(|p| (p.finding.origin.as_deref().unwrap(), &*p.finding.field, &*p.finding.message))
        .collect()
}

const TWO: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: cart, namespace: shop}\n\
                   ---\n# nothing\n---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: web.0\n";

#[test]
fn documents_become_objects_with_name_namespace_and_origin() {
    let manifest = read("a.yaml", TWO.as_bytes());
    assert_eq!(ids(&manifest), ["Service shop/cart", "Pod default/web.0"]);
    assert_eq!(origins(&manifest), ["a.yaml#1", "a.yaml#3"]);
    assert!(manifest.problems.is_empty());
    let Object::Pod(pod) = &manifest.objects[1].object else { panic!() };
    assert_eq!(pod.metadata.namespace.as_deref(), Some("default"));
}

#[test]
fn a_byte_order_mark_and_windows_lines_are_fine() {
    for text in [format!("\u{feff}{TWO}"), TWO.replace('\n', "\r\n")] {
        let manifest = read("a.yml", text.as_bytes());
        assert_eq!(manifest.objects.len(), 2, "{:?}", manifest.problems);
        assert!(manifest.problems.is_empty());
    }
}

#[test]
fn lists_of_every_kind_are_read() {
    let list = r#"{"kind":"List","apiVersion":"v1","items":[
        {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","namespace":"ignored"}},
        {"apiVersion":"v1","kind":"ServiceList","items":[{"metadata":{"name":"a"}},
            {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]},
        {"apiVersion":"apps/v1","kind":"DeploymentList","items":[{"metadata":{"name":"d"}}]},
        {"apiVersion":"v1","kind":"NodeList","items":null}]}
        {"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSliceList","metadata":{},
         "items":[{"metadata":{"name":"s"},"addressType":"IPv4","endpoints":[],"ports":null}]}"#;
    for name in ["a.json", "A.JSON"] {
        let manifest = read(name, list.as_bytes());
        assert_eq!(
            ids(&manifest),
            ["Namespace shop", "Service default/a", "Pod default/p", "EndpointSlice default/s"]
        );
        let expected =
            ["#1.items[0]", "#1.items[1].items[0]", "#1.items[1].items[1]", "#2.items[0]"];
        assert_eq!(origins(&manifest), expected.map(|at| format!("{name}{at}")));
        assert!(manifest.problems.is_empty(), "{:?}", manifest.problems);
    }
}

#[test]
fn other_kinds_are_ignored_in_silence() {
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("serving.knative.dev/v1", "Service"),
        ("v1", "ConfigMap"),
        ("v1", "service"),
    ] {
        let manifest =
            read("a.yaml", format!("apiVersion: {api_version}\nkind: {kind}\n").as_bytes());
        assert!(manifest.objects.is_empty() && manifest.problems.is_empty(), "{kind}");
    }
}

#[test]
fn what_cannot_be_read_is_named_with_field_and_value() {
    let service = |rest: &str| format!("apiVersion: v1\nkind: Service\n{rest}");
    let table = [
        (
            service("metadata: {name: a}\nspec: {ports: [{port: http}]}"),
            "spec.ports[0].port",
            "\"http\"",
        ),
        (
            service("metadata: {name: a}\nspec: {ports: [{port: 99999999999}]}"),
            "spec.ports[0].port",
            "99999999999",
        ),
        (service("metadata: {name: a, labels: {v: 1.5}}"), "metadata.labels.v", "1.5"),
        (
            service("metadata: {name: a, creationTimestamp: soon}"),
            "metadata.creationTimestamp",
            "soon",
        ),
        (service("metadata: {}"), "metadata.name", "it has no name"),
        (service("metadata: {generateName: web-}"), "metadata.name", "generateName \"web-\""),
        (service("metadata: {name: Cart}"), "metadata.name", "\"Cart\""),
        (service("metadata: {name: a.b}"), "metadata.name", "\"a.b\""),
        (service("metadata: {name: a, namespace: x/y}"), "metadata.namespace", "\"x/y\""),
        ("kind: Service\nmetadata: {name: a}".to_owned(), "apiVersion", "no apiVersion"),
        ("apiVersion: v1\nmetadata: {name: a}".to_owned(), "kind", "no kind"),
        ("apiVersion: 1\nkind: Service".to_owned(), "apiVersion", "no text"),
        ("apiVersion: v2\nkind: Service\nmetadata: {name: a}".to_owned(), "apiVersion", "\"v2\""),
        ("apiVersion: v1\nkind: EndpointSlice".to_owned(), "apiVersion", "\"v1\""),
        ("apiVersion: v1\nkind: List\nitems: {a: 1}".to_owned(), "items", "an object"),
        ("just words".to_owned(), "", "the text \"just words\""),
        ("- a\n- b".to_owned(), "", "a list"),
        ("17".to_owned(), "", "\"17\""),
        ("a: [1".to_owned(), "", "document 1 is no YAML: line "),
        ("a: 1\na: 2".to_owned(), "", "line 2, column 1: the key \"a\" stands twice"),
        (service("metadata: {name: yes}"), "metadata.name", "`true`"),
        (service("metadata: {name: 1.5}"), "metadata.name", "`1.5`"),
    ];
    for (text, field, part) in table {
        let manifest = read("a.yaml", text.as_bytes());
        let found = problems(&manifest);
        assert!(manifest.objects.is_empty(), "{text}");
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].1, field, "{text}: {found:?}");
        assert!(found[0].2.contains(part), "{text}: {found:?}");
        let finding = &manifest.problems[0].finding;
        assert_eq!(finding.severity, Severity::Problem, "{text}");
        assert!(!finding.way_out.is_empty());
    }
}

#[test]
fn an_unreadable_object_says_whose_form_is_lost() {
    let lost = |text: &str| read("a.yaml", text.as_bytes()).problems[0].lost.clone();
    let id = Id { kind: ObjectKind::Pod, namespace: "default".into(), name: "a".into() };
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: ";
    assert_eq!(lost(&format!("{pod}{{name: a}}\nspec: 1")), Lost::Object(id.clone()));
    assert_eq!(lost(&format!("{pod}{{name: a, labels: 1}}")), Lost::Object(id));
    assert_eq!(lost(&format!("{pod}{{name: 1}}")), Lost::Kind(ObjectKind::Pod));
    assert_eq!(lost("{"), Lost::Anything);
    let old = "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: a}";
    assert_eq!(lost(old), Lost::Nothing);
    assert_eq!(read("a.yaml", old.as_bytes()).problems[0].finding.severity, Severity::Warning);
}

#[test]
fn a_broken_document_costs_itself_alone() {
    let text =
        format!("{TWO}---\n  a: [\n---\napiVersion: v1\nkind: Node\nmetadata: {{name: n1}}\n");
    let manifest = read("a.yaml", text.as_bytes());
    assert_eq!(ids(&manifest), ["Service shop/cart", "Pod default/web.0", "Node n1"]);
    assert_eq!(problems(&manifest)[0].0, "a.yaml#4");
    assert!(problems(&manifest)[0].2.contains("line 1"), "{:?}", problems(&manifest));
    // JSON has no marker to go on at.
    let json = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}} {"a" {"b":1}"#;
    let manifest = read("a.json", json.as_bytes());
    assert_eq!(ids(&manifest), ["Node n1"]);
    assert_eq!(problems(&manifest)[0].0, "a.json#2");
}

#[test]
fn what_is_no_text_is_one_problem() {
    let manifest = read("a.yaml", b"kind: \xff\xfe");
    assert_eq!(manifest.problems[0].lost, Lost::Anything);
    assert!(problems(&manifest)[0].2.contains("UTF-8"));
    assert!(read("a.yaml", b" \n\t").blank);
    assert!(!read("a.yaml", b"# gone\n").blank);
}

#[test]
fn anchors_work_and_bombs_do_not() {
    let text = "apiVersion: v1\nkind: Service\nmetadata: &m {name: a, labels: &l {x: one}}\n\
                spec: {selector: *l}\nother: {<<: *l, z: *m}";
    let manifest = read("a.yaml", text.as_bytes());
    assert_eq!(ids(&manifest), ["Service default/a"], "{:?}", manifest.problems);
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    bomb.extend((1..12).map(|level| {
        let inner = vec![format!("*a{}", level - 1); 10].join(",");
        format!("a{level}: &a{level} [{inner}]\n")
    }));
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 60].join(","));
    for text in [bomb, long] {
        let manifest = read("a.yaml", text.as_bytes());
        assert_eq!(manifest.problems.len(), 1);
        assert!(manifest.problems[0].finding.message.len() < 400, "{:?}", problems(&manifest));
    }
}

#[test]
fn depth_is_bounded_from_both_sides() {
    let nested = |depth: usize| {
        let open = "{a: ".repeat(depth);
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: n1}}\nx: {open}1{}",
            "}".repeat(depth)
        )
    };
    assert_eq!(read("a.yaml", nested(63).as_bytes()).objects.len(), 1);
    assert_eq!(read("a.yaml", nested(64).as_bytes()).problems.len(), 1);
    // Unknown fields of JSON are skipped without recursion, so their depth costs nothing.
    for depth in [64, 100_000] {
        let json = format!(
            r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n1"}},"x":{}1{}}}"#,
            r#"{"a":"#.repeat(depth),
            "}".repeat(depth)
        );
        assert_eq!(read("a.json", json.as_bytes()).objects.len(), 1, "{depth}");
    }
    let lists = |depth: usize| {
        let open = r#"{"apiVersion":"v1","kind":"List","items":["#.repeat(depth);
        let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}"#;
        read("a.json", format!("{open}{node}{}", "]}".repeat(depth)).as_bytes())
    };
    assert_eq!(lists(8).objects.len(), 1);
    assert_eq!(lists(9).problems.len(), 1);
}

#[test]
fn of_many_problems_the_first_are_said() {
    for (broken, said) in [(100, 100), (101, 101), (5_000, 101)] {
        let manifest = read("a.yaml", "---\n[\n".repeat(broken).as_bytes());
        assert_eq!(manifest.problems.len(), said);
        let last = manifest.problems.last().unwrap();
        let unsaid = format!("{} more of its parts cannot be read", broken - 100);
        assert_eq!(last.finding.message == unsaid, broken > 100, "{last:?}");
        assert_eq!(last.lost, Lost::Anything);
    }
}

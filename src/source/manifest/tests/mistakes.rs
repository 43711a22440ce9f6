//! What people write by mistake, or by the habits of other tools.

use super::*;

#[test]
fn a_name_that_is_no_text_is_named_and_to_be_quoted() {
    for (name, shown, quoted) in
        [("yes", "true", "\"true\""), ("off", "false", "\"false\""), ("17", "17", "\"17\"")]
    {
        let text = format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n");
        let manifest = read("a.yaml", text.as_bytes());
        let finding = &manifest.problems[0].finding;
        assert_eq!(finding.object.to_string(), format!("Service default/{shown}"));
        let way_out = format!("quote it, as in {quoted}: without quotes");
        assert!(finding.way_out.starts_with(&way_out), "{finding}");
        assert_eq!(manifest.problems[0].lost, Lost::Kind(ObjectKind::Service));
        let text = text.replace(name, &format!("\"{name}\""));
        assert_eq!(read("a.yaml", text.as_bytes()).objects.len(), 1, "{text}");
    }
}

#[test]
fn a_key_that_stands_twice_is_refused_in_every_form() {
    let object = |name: &str, labels: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{name}","labels":{labels}}}}}"#
        )
    };
    let (bad, good) = (object("a", r#"{"x":"1","y":"2","x":"1"}"#), object("b", "{}"));
    let list = format!(r#"{{"kind":"List","apiVersion":"v1","items":[{bad},{good}]}}"#);
    let yaml =
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  labels:\n    x: 1\n    x: 1\n";
    let cases = [
        ("a.json", format!("{bad}{good}"), "metadata.labels.x"),
        ("a.json", list, "metadata.labels.x"),
        // JSON in a file of YAML, which is read as what it is.
        ("a.yaml", format!("{bad}\n---\n{good}\n"), "metadata.labels.x"),
        ("a.yaml", format!("{yaml}---\n{good}\n"), ""),
    ];
    for (name, text, field) in cases {
        let manifest = read(name, text.as_bytes());
        assert_eq!(ids(&manifest), ["Service default/b"], "{text}");
        let found = problems(&manifest);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].1, field, "{found:?}");
        assert!(found[0].2.ends_with("the key \"x\" stands twice in one object"), "{found:?}");
        let finding = &manifest.problems[0].finding;
        assert!(finding.way_out.starts_with("remove one of the two"), "{finding}");
        assert!(!finding.to_string().contains("Policy"), "{finding}");
    }
    // Where it is the very name of the object, or its list, the form of anything may be lost.
    for (text, field) in [
        (good.replace("\"kind\"", "\"kind\":\"Pod\",\"kind\""), "kind"),
        (good.replace("\"metadata\"", "\"metadata\":{},\"metadata\""), "metadata"),
        (r#"{"kind":"List","apiVersion":"v1","items":[],"items":[]}"#.to_owned(), "items"),
    ] {
        let manifest = read("a.json", text.as_bytes());
        assert_eq!(problems(&manifest)[0].1, field, "{text}");
        assert!(problems(&manifest)[0].2.contains("stands twice"), "{text}");
        assert_eq!(manifest.problems[0].lost, Lost::Anything);
    }
    // Other kinds may hold what they like.
    let other = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"x":"1","x":"2"}}"#;
    assert!(read("a.json", other.as_bytes()).problems.is_empty());
}

#[test]
fn null_means_absent_and_in_a_map_of_texts_empty() {
    let text = "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  labels: {x: one, y: null}\n  \
                annotations: {aether.io/port: ~, aether.io/service: b}\nspec: {ports: [{port: 80, name: null}], \
                selector: {v: null}}\n";
    let without = text.replace("y: null", "y: \"\"").replace("port: ~", "port: \"\"");
    let without = without.replace(", name: null", "").replace("v: null", "v: \"\"");
    let (with, without) = (read("a.yaml", text.as_bytes()), read("a.yaml", without.as_bytes()));
    assert!(with.problems.is_empty(), "{:?}", with.problems);
    assert_eq!(with.objects[0].form, without.objects[0].form);
    // What else is wrong is said all the same, and its place is that of the text.
    let wrong = text.replace("port: 80", "port: http");
    let wrong = read("a.yaml", wrong.as_bytes());
    assert_eq!(problems(&wrong)[0].1, "spec.ports[0].port", "{:?}", wrong.problems);
    let nothing = read("a.yaml", text.replace("name: a", "name: null").as_bytes());
    assert_eq!(problems(&nothing)[0].2, "it has no name");
}

#[test]
fn empty_documents_cost_next_to_nothing() {
    let text = "---\n# nothing\n".repeat(200_000) + TWO;
    let start = std::time::Instant::now();
    let manifest = read("a.yaml", text.as_bytes());
    // Hundreds of times what it takes, and a fraction of what starting a parser for each does.
    assert!(start.elapsed() < std::time::Duration::from_secs(3), "{:?}", start.elapsed());
    assert_eq!(origins(&manifest), ["a.yaml#200000", "a.yaml#200002"]);
}

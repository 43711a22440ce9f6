//! The resolver's options.

use serde_json::{Value, json};

use super::*;
use crate::admission::decide::Left;

/// The options after admission, and why some were left.
fn options(change: Value, settings: &Settings) -> (Vec<String>, Option<Left>) {
    let pod = pod_with(change);
    let Decision::Managed(managed) = decided(&pod, settings) else { panic!("{pod}") };
    let admitted = admitted(&pod, settings);
    let options = admitted["spec"]["dnsConfig"]["options"].as_array().cloned().unwrap_or_default();
    let text = |option: &Value| {
        let value = option["value"].as_str().map(|value| format!("={value}"));
        format!("{}{}", option["name"].as_str().unwrap(), value.unwrap_or_default())
    };
    (options.iter().map(text).collect(), managed.resolver.left)
}

#[test]
fn the_options_are_set_where_the_pod_has_none_of_that_name() {
    let own = |options: Value| json!({ "spec": { "dnsConfig": { "options": options } } });
    let table = [
        (json!({}), vec!["ndots=2", "timeout=1", "attempts=3"]),
        (json!({ "spec": { "dnsConfig": {} } }), vec!["ndots=2", "timeout=1", "attempts=3"]),
        (own(json!([])), vec!["ndots=2", "timeout=1", "attempts=3"]),
        (own(Value::Null), vec!["ndots=2", "timeout=1", "attempts=3"]),
        (
            own(json!([{ "name": "ndots", "value": "5" }])),
            vec!["ndots=5", "timeout=1", "attempts=3"],
        ),
        (own(json!([{ "name": "ndots" }])), vec!["ndots", "timeout=1", "attempts=3"]),
        (
            own(json!([{ "name": "ndots", "value": null }])),
            vec!["ndots", "timeout=1", "attempts=3"],
        ),
        // The kubelet writes such a name into resolv.conf, where it means what it says.
        (own(json!([{ "name": "ndots:5" }])), vec!["ndots:5", "timeout=1", "attempts=3"]),
        (
            own(json!([{ "name": "attempts", "value": "9" }, { "name": "edns0" }])),
            vec!["attempts=9", "edns0", "ndots=2", "timeout=1"],
        ),
        // Names are told apart by case, as in resolv.conf.
        (
            own(json!([{ "name": "NDOTS", "value": "5" }])),
            vec!["NDOTS=5", "ndots=2", "timeout=1", "attempts=3"],
        ),
        (
            own(json!([
                { "name": "timeout", "value": "" },
                { "name": "attempts" },
                { "name": "ndots", "value": "1" },
            ])),
            vec!["timeout=", "attempts", "ndots=1"],
        ),
    ];
    for (change, expected) in table {
        assert_eq!(
            options(change.clone(), &settings()),
            (expected.into_iter().map(str::to_owned).collect(), None),
            "{change}"
        );
    }
}

#[test]
fn the_policy_says_which_options_make_sense() {
    let table: [(Value, &[&str], Option<Left>); 8] = [
        (json!({ "dnsPolicy": "ClusterFirst" }), &["ndots=2", "timeout=1", "attempts=3"], None),
        (json!({ "dnsPolicy": null }), &["ndots=2", "timeout=1", "attempts=3"], None),
        (
            json!({ "dnsPolicy": "ClusterFirstWithHostNet" }),
            &["ndots=2", "timeout=1", "attempts=3"],
            None,
        ),
        (
            json!({ "dnsPolicy": "Default" }),
            &["timeout=1", "attempts=3"],
            Some(Left::PolicyDefault),
        ),
        (
            json!({ "dnsPolicy": "None", "dnsConfig": { "nameservers": ["10.0.0.1"] } }),
            &[],
            Some(Left::PolicyNone),
        ),
        (json!({ "hostNetwork": true }), &[], Some(Left::HostNetwork)),
        (
            json!({ "hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet" }),
            &[],
            Some(Left::HostNetwork),
        ),
        (json!({ "hostNetwork": false }), &["ndots=2", "timeout=1", "attempts=3"], None),
    ];
    for (spec, expected, left) in table {
        let expected = expected.iter().map(|option| (*option).to_owned()).collect();
        assert_eq!(options(json!({ "spec": spec }), &settings()), (expected, left), "{spec}");
    }
}

#[test]
fn ndots_is_the_number_of_labels_of_the_domain() {
    for (domain, expected) in
        [("aether.internal", "2"), ("mesh.corp.example", "3"), ("a.b.c.d.e", "5")]
    {
        let mut settings = settings();
        settings.index.names = MeshNames::new(domain, "cluster.local").unwrap();
        let (options, _) = options(json!({}), &settings);
        assert_eq!(options[0], format!("ndots={expected}"), "{domain}");
    }
}

#[test]
fn switched_off_the_resolver_is_left_alone() {
    let off = Settings { pod_ndots: false, ..settings() };
    assert_eq!(options(json!({}), &off), (vec![], Some(Left::Off)));
    let admitted = admitted(&pod(), &off);
    assert_eq!(admitted["spec"].get("dnsConfig"), None);
}

#[test]
fn the_operations_are_as_small_as_they_can_be() {
    let settings = without_gate();
    let own =
        json!({ "spec": { "dnsConfig": { "searches": ["x"], "options": [{ "name": "edns0" }] } } });
    assert_eq!(
        operations(&pod_with(own), &settings),
        json!([
            { "op": "add", "path": "/spec/dnsConfig/options/-", "value": { "name": "ndots", "value": "2" } },
            { "op": "add", "path": "/spec/dnsConfig/options/-", "value": { "name": "timeout", "value": "1" } },
            { "op": "add", "path": "/spec/dnsConfig/options/-", "value": { "name": "attempts", "value": "3" } },
        ])
    );
    let all = json!([
        { "name": "ndots", "value": "2" },
        { "name": "timeout", "value": "1" },
        { "name": "attempts", "value": "3" },
    ]);
    let searches = json!({ "spec": { "dnsConfig": { "searches": ["x"] } } });
    assert_eq!(
        operations(&pod_with(searches), &settings),
        json!([{ "op": "add", "path": "/spec/dnsConfig/options", "value": all }])
    );
    assert_eq!(
        operations(&pod(), &settings),
        json!([{ "op": "add", "path": "/spec/dnsConfig", "value": { "options": all } }])
    );
}

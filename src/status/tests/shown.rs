//! The page of the snapshot.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::world::{NODE, snapshot};
use crate::status::{Question, Unanswered, snapshot as page};

fn ask(words: &[(&str, &str)]) -> Result<Value, Unanswered> {
    let asked: BTreeMap<_, _> =
        words.iter().map(|(word, value)| ((*word).to_owned(), (*value).to_owned())).collect();
    page(Some(&snapshot()), &Question::of(&asked)?)
}

#[test]
fn what_is_shared_counts_once() {
    let of = |resources: u64, bytes: u64| json!({ "resources": resources, "bytes": bytes });
    let expected = json!({
        "generation": 7, "nodes": 2, "groups": 2,
        // Two clusters of 3 bytes; a tail of 13; two heads of 3 and one tail of 9.
        "bytes": 6 + 13 + 6 + 9,
        "types": {
            "CDS": of(2, 6), "EDS": of(0, 0), "LDS": of(2, 15), "RDS": of(0, 0), "VHDS": of(1, 13),
        },
    });
    assert_eq!(ask(&[]).unwrap(), expected);
    assert_eq!(page(None, &Question::default()), Err(Unanswered::NotYet));
}

#[test]
fn a_resource_is_shown_as_a_node_sees_it() {
    for kind in ["CDS", "cds", "Cluster", "type.googleapis.com/envoy.config.cluster.v3.Cluster"] {
        let shown = ask(&[("type", kind), ("name", "a"), ("node", NODE)]).unwrap();
        assert_eq!(shown["resource"], json!({ "name": "a" }));
        assert_eq!((&shown["node"], &shown["bytes"]), (&json!(NODE), &json!(3)));
        assert_eq!(shown["version"].as_str().unwrap().len(), 16);
    }
    // Without a node it is that of the first who sees it.
    let shown = ask(&[("type", "VHDS"), ("name", "shop/v")]).unwrap();
    assert_eq!(shown["node"], NODE);
    assert_eq!(shown["resource"], json!({ "name": "shop/v", "domains": ["example.com"] }));
    let names = ask(&[("type", "VHDS"), ("node", NODE)]).unwrap();
    assert_eq!((&names["names"], &names["more"]), (&json!(["shop/v"]), &json!(0)));
    let names = ask(&[("type", "CDS")]).unwrap();
    assert_eq!((&names["names"], &names["node"]), (&json!(["a", "b"]), &json!("pod/pay/till")));
}

#[test]
fn a_question_that_says_nothing_is_told_how_to_ask() {
    for (words, error) in [
        (&[("type", "XDS")][..], "type=XDS: write one of CDS, EDS, LDS, RDS, VHDS"),
        (&[("name", "a")], "type is missing"),
        (&[("type", "CDS"), ("nam", "a")], "nam: ask with type, name, node and protocol"),
        (&[("type", "CDS"), ("protocol", "grpc")], "protocol=grpc: write delta or sotw"),
    ] {
        let said = ask(words).unwrap_err();
        assert!(matches!(said, Unanswered::Wrong(_)), "{said:?}");
        assert!(said.to_string().starts_with(error), "{said}");
    }
    for (words, error) in [
        (
            &[("type", "CDS"), ("name", "x"), ("node", NODE)][..],
            "no CDS resource x for pod/shop/cart",
        ),
        (&[("type", "CDS"), ("name", "x")], "no CDS resource x: "),
        (&[("type", "CDS"), ("node", "pod/a/b")], "node=pod/a/b: it is not known"),
        (&[("type", "VHDS"), ("name", "pay/v"), ("node", NODE)], "no VHDS resource pay/v for"),
    ] {
        let said = ask(words).unwrap_err();
        assert!(matches!(said, Unanswered::Absent(_)), "{said:?}");
        assert!(said.to_string().starts_with(error), "{said}");
    }
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use jiff::Timestamp;
use serde_json::{Value, json};

use super::table::text;
use crate::status::Nodes;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn of(state: &str, due: u64, words: Option<&str>) -> Value {
    let refused =
        words.map(|words| json!({ "nonce": 2, "at": at(0), "words": words, "names": [] }));
    json!({
        "state": state, "wildcard": true, "names": 0, "due": due, "unanswered": 0,
        "sent": null, "accepted": null, "refused": refused,
    })
}

fn stream(node: &str, address: &str, since: i64, standing: &str, types: &Value) -> Value {
    json!({
        "node": node, "address": address, "since": at(since), "protocol": "delta",
        "service": "ADS", "standing": standing, "generation": 4, "types": types,
    })
}

fn shown(streams: &[Value]) -> String {
    let nodes = json!({ "generation": 4, "streams": streams });
    let nodes: Nodes = serde_json::from_value(nodes).unwrap();
    text(&nodes, at(100_000))
}

#[test]
fn a_line_for_each_stream_is_aligned_and_has_the_proxys_words() {
    let synced = of("synced", 0, None);
    let all = json!({ "CDS": synced, "EDS": synced, "LDS": synced, "RDS": synced, "VHDS": synced });
    // An old refusal is no news.
    let over = of("synced", 0, Some("it was wrong once"));
    let refused = of("refused", 0, Some("Error adding\nlistener  x: no such filter"));
    let some = json!({ "CDS": of("pending", 3, None), "EDS": over, "LDS": refused });
    // It asked for some once, and wants none of them any more.
    let mut none = of("synced", 0, None);
    none["wildcard"] = json!(false);
    let waits =
        json!({ "CDS": of("pending", 0, None), "LDS": of("pending", 0, None), "RDS": none });
    let streams = [
        stream("pod/shop/cart", "10.0.0.7:41234", 99_988, "served", &all),
        stream("pod/shop/frontend", "unix:pid=12", 99_800, "served", &some),
        stream("pod/shop/new", "unix:pid=7", 0, "waiting", &waits),
        stream("", "unix:pid=8", 90_000, "served", &json!({})),
    ];
    let expected = "\
NODE               ADDRESS         SINCE  CDS        EDS     LDS      RDS     VHDS
pod/shop/cart      10.0.0.7:41234  12s    synced     synced  synced   synced  synced
pod/shop/frontend  unix:pid=12     3m20s  pending 3  synced  refused  -       -       LDS: Error adding listener x: no such filter
pod/shop/new       unix:pid=7      1d3h   waiting    -       waiting  -       -
-                  unix:pid=8      2h46m  -          -       -        -       -

4 streams, 1 refusing, 1 pending, 1 waiting; snapshot 4
";
    assert_eq!(shown(&streams), expected);
}

#[test]
fn nobody_is_a_line_too_and_words_have_an_end() {
    assert_eq!(shown(&[]), "0 streams, 0 refusing, 0 pending, 0 waiting; snapshot 4\n");
    let long = "é".repeat(401);
    let types = json!({ "CDS": of("refused", 0, Some(&long)) });
    let text = shown(&[stream("pod/a/b", "x", 0, "served", &types)]);
    let line = text.lines().nth(1).unwrap();
    assert!(line.ends_with(&format!("CDS: {}…", "é".repeat(400))), "{line}");
}

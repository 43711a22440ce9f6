//! Which clients a CSDS request asks for.

use envoy_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use envoy_types::pb::envoy::r#type::matcher::v3::{
    NodeMatcher, RegexMatcher, StringMatcher, StructMatcher,
};
use tonic::Code;

use crate::status::csds::Wanted;

fn by(pattern: MatchPattern, ignore_case: bool) -> NodeMatcher {
    let node_id = Some(StringMatcher { ignore_case, match_pattern: Some(pattern) });
    NodeMatcher { node_id, node_metadatas: Vec::new() }
}

#[test]
fn s31_node_ids_are_matched_and_one_matcher_is_enough() {
    use MatchPattern::{Contains, Exact, Prefix, Suffix};
    let table = [
        (vec![], true),
        (vec![NodeMatcher::default()], true),
        (vec![by(Exact("pod/shop/cart".into()), false)], true),
        (vec![by(Exact("pod/shop".into()), false)], false),
        (vec![by(Prefix("pod/shop/".into()), false)], true),
        (vec![by(Prefix("od/".into()), false)], false),
        (vec![by(Suffix("/cart".into()), false)], true),
        (vec![by(Contains("shop".into()), false)], true),
        (vec![by(Contains("SHOP".into()), false)], false),
        (vec![by(Contains("SHOP".into()), true)], true),
        (vec![by(Exact("x".into()), false), by(Suffix("t".into()), false)], true),
    ];
    for (matchers, expected) in table {
        let wanted = Wanted::of(&matchers).unwrap();
        assert_eq!(wanted.matches("pod/shop/cart"), expected, "{matchers:?}");
    }
}

#[test]
fn s31_a_matcher_that_cannot_be_honoured_is_refused_with_the_way_out() {
    let regex = by(MatchPattern::SafeRegex(RegexMatcher::default()), false);
    let metadata = NodeMatcher { node_id: None, node_metadatas: vec![StructMatcher::default()] };
    let nothing = NodeMatcher { node_id: Some(StringMatcher::default()), node_metadatas: vec![] };
    for (matcher, field) in
        [(regex, "node_id.safe_regex"), (metadata, "node_metadatas"), (nothing, "node_id: ")]
    {
        let status = Wanted::of(&[NodeMatcher::default(), matcher]).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let message = status.message();
        assert!(message.contains(field) && message.contains("exact, prefix"), "{message}");
    }
}

//! Which clients a CSDS request asks for: matchers of the node id, of which one has to hold.

use envoy_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use envoy_types::pb::envoy::r#type::matcher::v3::{NodeMatcher, StringMatcher};
use tonic::Status;

/// The matchers of a request; none of them: everybody.
#[derive(Debug)]
pub(in crate::status) struct Wanted(Vec<IdMatcher>);

#[derive(Debug)]
enum Pattern {
    Any,
    Exact,
    Prefix,
    Suffix,
    Contains,
}

#[derive(Debug)]
struct IdMatcher {
    pattern: Pattern,
    text: String,
    ignore_case: bool,
}

impl Wanted {
    /// Reads the matchers of a request.
    ///
    /// # Errors
    /// For what cannot be decided here: metadata, of which nothing is kept, and regular expressions.
    pub(in crate::status) fn of(matchers: &[NodeMatcher]) -> Result<Self, Status> {
        matchers.iter().map(IdMatcher::of).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a client of this node id is asked for.
    pub(in crate::status) fn matches(&self, node: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|matcher| matcher.matches(node))
    }
}

impl IdMatcher {
    fn of(matcher: &NodeMatcher) -> Result<Self, Status> {
        if !matcher.node_metadatas.is_empty() {
            return Err(refused("node_metadatas", "of a node's metadata nothing is kept"));
        }
        let Some(StringMatcher { ignore_case, match_pattern }) = &matcher.node_id else {
            return Ok(Self { pattern: Pattern::Any, text: String::new(), ignore_case: false });
        };
        let (pattern, text) = match match_pattern {
            Some(MatchPattern::Exact(text)) => (Pattern::Exact, text),
            Some(MatchPattern::Prefix(text)) => (Pattern::Prefix, text),
            Some(MatchPattern::Suffix(text)) => (Pattern::Suffix, text),
            Some(MatchPattern::Contains(text)) => (Pattern::Contains, text),
            Some(MatchPattern::SafeRegex(_)) => {
                return Err(refused("node_id.safe_regex", "regular expressions are not read"));
            }
            Some(MatchPattern::Custom(_)) => {
                return Err(refused("node_id.custom", "extensions are not read"));
            }
            None => return Err(refused("node_id", "it has no pattern")),
        };
        let text = if *ignore_case { text.to_lowercase() } else { text.clone() };
        Ok(Self { pattern, text, ignore_case: *ignore_case })
    }

    fn matches(&self, node: &str) -> bool {
        let lower = self.ignore_case.then(|| node.to_lowercase());
        let node = lower.as_deref().unwrap_or(node);
        let text = self.text.as_str();
        match self.pattern {
            Pattern::Any => true,
            Pattern::Exact => node == text,
            Pattern::Prefix => node.starts_with(text),
            Pattern::Suffix => node.ends_with(text),
            Pattern::Contains => node.contains(text),
        }
    }
}

fn refused(field: &str, why: &str) -> Status {
    Status::invalid_argument(format!(
        "node_matchers.{field}: {why}; match node_id by exact, prefix, suffix or contains"
    ))
}

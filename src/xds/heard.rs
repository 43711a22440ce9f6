//! What a request may turn out to be.

use std::sync::Arc;

use super::Kind;

/// Why a stream ends. All of them are the client's to mend (InvalidArgument).
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// Statement 3.
    #[error("the first request has no node: set node.id in the Envoy bootstrap")]
    NoNode,
    /// A node id that is refused, with the reason.
    #[error("node.id {id:?} is refused: {reason}")]
    Node {
        /// The id.
        id: String,
        /// Why, and what would be accepted.
        reason: String,
    },
    /// One stream speaks for one node.
    #[error("the stream began as node {was:?} and now says {now:?}: open a stream for each node")]
    OtherNode {
        /// The id in the first request.
        was: String,
        /// The id in this one.
        now: String,
    },
    /// Statement 2.
    #[error("type_url is empty: on the aggregated service every request names its type")]
    NoType,
    /// More requests than are kept for a node that is not known yet.
    #[error("more than {0} requests before the node is known: wait for the first response")]
    Impatient(usize),
}

/// A response that the client refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The type.
    pub kind: Kind,
    /// The client's words.
    pub words: String,
    /// The names of that response that stand in these words.
    pub names: Vec<String>,
    /// The generation of the snapshot that the response was made from.
    pub generation: u64,
    /// Whether it said the very same at its last refusal of this type.
    pub repeated: bool,
}

/// What a request was, for the counters and the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A subscription, an acknowledgement, or both.
    Fine,
    /// A refusal.
    Refused(Refusal),
    /// A type that is not served on this stream.
    Unknown,
}

/// Decides whether a node id may connect; the error says why not, and what may.
pub type Admit = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// Hears of refusals, with the node id of who refused. It must not wait.
pub type OnRefusal = Arc<dyn Fn(&str, &Refusal) + Send + Sync>;

/// The nonce of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nonce {
    /// It has none.
    None,
    /// In our form.
    Of(u64),
    /// In some other form.
    Foreign,
}

impl Nonce {
    /// Reads the field.
    pub(super) fn parse(text: &str) -> Self {
        if text.is_empty() { Self::None } else { text.parse().map_or(Self::Foreign, Self::Of) }
    }
}

/// How many bytes of a client's words are searched for names.
const SEARCHED: usize = 4 << 10;

/// Whether words speak of a resource. Its name must stand there whole: `shop/b:80` is not meant
/// where `eshop/b:80` is.
pub(super) fn names(words: &str, name: &str) -> bool {
    let words = super::clients::beginning(words, SEARCHED);
    let joins = |byte: &u8| b"-_./:".contains(byte);
    let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || joins(byte);
    // Where a sentence ends, its punctuation is followed by something else than a name.
    let goes_on = |rest: &str| match rest.as_bytes() {
        [first, ..] if first.is_ascii_alphanumeric() => true,
        [first, next, ..] => joins(first) && (next.is_ascii_alphanumeric() || *next == b'_'),
        _ => false,
    };
    !name.is_empty()
        && words.match_indices(name).any(|(at, _)| {
            let before = words.get(..at).and_then(|before| before.as_bytes().last());
            let after = words.get(at + name.len()..).unwrap_or_default();
            !before.is_some_and(of_name) && !goes_on(after)
        })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_name_is_meant_where_it_stands_whole() {
        for (words, name, meant) in [
            ("cluster shop/b:80: no such filter", "shop/b:80", true),
            ("shop/b:80", "shop/b:80", true),
            ("'eshop/b:80' is wrong", "shop/b:80", false),
            ("shop/b:8080 is wrong", "shop/b:80", false),
            ("no route config cap_http.x/b.cd", "cap_http.x/b.c", false),
            ("no route config cap_http.x/b.c.", "cap_http.x/b.c", true),
            ("cap_http.x/b.c.d, cap_http.x/b.c", "cap_http.x/b.c", true),
            ("(\"é\": cap_http)", "cap_http", true),
            ("listener(s) capture_a_b: cannot bind", "capture_a_b", true),
            ("listener capture_a_b_c", "capture_a_b", false),
            ("anything", "", false),
        ] {
            assert_eq!(names(words, name), meant, "{words} | {name}");
        }
        let late = format!("{} shop/b:80", "x".repeat(5000));
        assert!(!names(&late, "shop/b:80"), "Envoy's words end before");
    }
}

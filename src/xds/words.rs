//! What the log says of streams.

use super::{Refusal, Standing};

/// How many names of a refusal are told.
const NAMES: usize = 8;

/// Says that the node of a stream has come to wait, or waits no more. To be served is no news.
pub(super) fn standing(node: &str, peer: &str, before: Option<Standing>, now: Option<Standing>) {
    match now {
        Some(Standing::Waiting) => {
            tracing::info!(node, %peer, "the proxy waits: its node is not known, or not managed");
        }
        Some(Standing::Forgotten) => {
            tracing::info!(
                node,
                %peer,
                "the proxy's node is gone, or not managed any more: it keeps what it has, and waits"
            );
        }
        Some(Standing::Served) if before.is_some() => {
            tracing::info!(node, %peer, "the proxy waits no more: its node is known");
        }
        Some(Standing::Served) | None => {}
    }
}

/// Says that a stream is refused, and why.
pub(super) fn refused(node: Option<&str>, peer: &str, words: &str) {
    tracing::info!(node, %peer, "stream refused: {words}");
}

/// Says once that a response was refused; a client that repeats itself is not repeated.
pub(super) fn refusal(node: &str, peer: &str, refusal: &Refusal) {
    let Refusal { kind, words, names, repeated, .. } = refusal;
    let names = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let kind = kind.type_url();
    if *repeated {
        tracing::debug!(node, %peer, kind, names, "refused again: {words}");
    } else {
        tracing::warn!(node, %peer, kind, names, "the proxy refused it: {words}");
    }
}

//! The snapshot in JSON: how large it is, what a node sees of a type, and any one resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::descriptors;
use crate::xds::{Kind, Snapshot, View};

/// How many names are listed at most.
const NAMES: usize = 10_000;

/// The largest resource that is put into JSON, in bytes.
const LARGEST: usize = 16 << 20;

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum Unanswered {
    /// The question is wrong.
    #[error("{0}")]
    Wrong(String),
    /// There is no such thing.
    #[error("{0}")]
    Absent(String),
    /// Nothing is served yet.
    #[error("there is no snapshot yet: /readyz says what is waited for")]
    NotYet,
    /// It cannot be shown.
    #[error("{0}")]
    Failed(String),
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    kind: Option<Kind>,
    name: Option<String>,
    node: Option<String>,
    protocol: Option<String>,
}

impl Question {
    /// Reads `type`, `name`, `node` and `protocol`.
    ///
    /// # Errors
    /// For a word that is none of these, or a value that says nothing.
    pub fn of(asked: &BTreeMap<String, String>) -> Result<Self, Unanswered> {
        let mut question = Self::default();
        for (word, value) in asked {
            match word.as_str() {
                "type" => question.kind = Some(kind(value)?),
                "name" => question.name = Some(value.clone()),
                "node" => question.node = Some(value.clone()),
                "protocol" if matches!(value.as_str(), "delta" | "sotw") => {
                    question.protocol = Some(value.clone());
                }
                "protocol" => {
                    return Err(Unanswered::Wrong(format!(
                        "protocol={value}: write delta or sotw"
                    )));
                }
                word => {
                    return Err(Unanswered::Wrong(format!(
                        "{word}: ask with type, name, node and protocol"
                    )));
                }
            }
        }
        if question.kind.is_none() && !asked.is_empty() {
            return Err(Unanswered::Wrong("type is missing: write type=CDS, for example".into()));
        }
        Ok(question)
    }
}

/// A type by its short name, by the name of its message, or by its URL.
fn kind(text: &str) -> Result<Kind, Unanswered> {
    let found = Kind::ALL.into_iter().find(|kind| {
        let url = kind.type_url();
        let message = url.rsplit(['/', '.']).next().unwrap_or_default();
        text == url
            || text.eq_ignore_ascii_case(kind.short_name())
            || text.eq_ignore_ascii_case(message)
    });
    found.ok_or_else(|| {
        let known = Kind::ALL.map(Kind::short_name).join(", ");
        Unanswered::Wrong(format!("type={text}: write one of {known}, or a type URL"))
    })
}

#[derive(Serialize)]
struct OfType {
    resources: u64,
    bytes: u64,
}

/// The page.
///
/// # Errors
/// Where there is nothing to show.
pub fn page(snapshot: Option<&Arc<Snapshot>>, asked: &Question) -> Result<Value, Unanswered> {
    let snapshot = snapshot.ok_or(Unanswered::NotYet)?;
    let Some(kind) = asked.kind else { return Ok(whole(snapshot)) };
    let protocol = asked.protocol.as_deref().unwrap_or("delta");
    let Some(name) = asked.name.as_deref() else {
        let view = view(snapshot, asked.node.as_deref(), protocol)?;
        let names = view.1.names(kind);
        let shown: Vec<&str> = names.iter().take(NAMES).map(AsRef::as_ref).collect();
        let more = names.len() - shown.len();
        let (node, kind) = (view.0, kind.type_url());
        return Ok(json!({ "node": node, "type": kind, "names": shown, "more": more }));
    };
    let (node, resource) = match &asked.node {
        Some(node) => {
            let (node, view) = view(snapshot, Some(node), protocol)?;
            (node, view.get(kind, name))
        }
        None => snapshot
            .nodes
            .keys()
            .find_map(|node| {
                let view = View::new(snapshot, node, &protocol.into())?;
                Some((node.to_string(), view.get(kind, name)?))
            })
            .map_or((String::new(), None), |(node, resource)| (node, Some(resource))),
    };
    let resource = resource.ok_or_else(|| {
        let of = asked.node.as_deref().map_or_else(String::new, |node| format!(" for {node}"));
        let kind = kind.short_name();
        Unanswered::Absent(format!(
            "no {kind} resource {name}{of}: ask without name for the names that there are"
        ))
    })?;
    let body = resource.body();
    if body.len() > LARGEST {
        return Err(Unanswered::Failed(format!(
            "{name} has {} bytes, too many to be shown: at most {LARGEST} are",
            body.len()
        )));
    }
    let url = kind.type_url();
    let message = url.rsplit('/').next().unwrap_or(url);
    let decoded = descriptors::to_json(message, &body.to_bytes());
    let decoded = decoded.map_err(|error| Unanswered::Failed(error.to_string()))?;
    Ok(json!({
        "node": node,
        "type": url,
        "name": name,
        "version": resource.version().to_string(),
        "bytes": body.len(),
        "resource": decoded,
    }))
}

/// The snapshot as a whole.
fn whole(snapshot: &Snapshot) -> Value {
    let sizes = snapshot.sizes();
    let bytes: u64 = sizes.values().map(|size| size.bytes).sum();
    let of_type = |(kind, size): (Kind, crate::xds::Size)| {
        let of_type = OfType { resources: size.resources, bytes: size.bytes };
        (kind.short_name(), of_type)
    };
    let types: BTreeMap<_, _> = sizes.into_iter().map(of_type).collect();
    json!({
        "generation": snapshot.generation,
        "nodes": snapshot.nodes.len(),
        "groups": snapshot.groups.len(),
        "bytes": bytes,
        "types": types,
    })
}

/// The view of a node, or of the first that there is.
fn view(
    snapshot: &Arc<Snapshot>,
    node: Option<&str>,
    protocol: &str,
) -> Result<(String, View), Unanswered> {
    let first = || snapshot.nodes.keys().next().map(AsRef::as_ref);
    let node = node.or_else(first).ok_or_else(|| {
        Unanswered::Absent("no node is known, so nothing is seen by any".to_owned())
    })?;
    let view = View::new(snapshot, node, &protocol.into()).ok_or_else(|| {
        Unanswered::Absent(format!("node={node}: it is not known, or not managed, and would wait"))
    })?;
    Ok((node.to_owned(), view))
}

//! The streams as a table for people.

use jiff::Timestamp;

use crate::status::{Nodes, OfType, Stream};

/// The columns of types, in the order of sending.
const TYPES: [&str; 5] = ["CDS", "EDS", "LDS", "RDS", "VHDS"];

/// The longest words of a proxy that are printed, in characters; `--json` has all.
const WORDS: usize = 400;

/// The table, with its last line; `now` is what times are told from.
pub(super) fn text(nodes: &Nodes, now: Timestamp) -> String {
    let mut rows = vec![head()];
    rows.extend(nodes.streams.iter().map(|stream| row(stream, now)));
    let mut widths = vec![0; rows.iter().map(Vec::len).max().unwrap_or_default()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    if !nodes.streams.is_empty() {
        for row in &rows {
            let cells = widths.iter().zip(row).map(|(width, cell)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out.push('\n');
    }
    out.push_str(&sum(nodes));
    out.push('\n');
    out
}

fn head() -> Vec<String> {
    let types = TYPES.iter().map(ToString::to_string);
    ["NODE", "ADDRESS", "SINCE"].into_iter().map(str::to_owned).chain(types).collect()
}

fn row(stream: &Stream, now: Timestamp) -> Vec<String> {
    let node = if stream.node.is_empty() { "-" } else { &stream.node };
    let mut row = vec![node.to_owned(), stream.address.clone(), age(stream.since, now)];
    row.extend(TYPES.iter().map(|name| cell(stream, name)));
    let words: Vec<_> = TYPES.iter().filter_map(|name| words(stream, name)).collect();
    row.push(words.join("; "));
    row
}

fn waits(stream: &Stream) -> bool {
    matches!(stream.standing.as_deref(), Some("waiting" | "forgotten"))
}

fn cell(stream: &Stream, name: &str) -> String {
    match stream.types.get(name) {
        None => "-".to_owned(),
        Some(of) if !of.wildcard && of.names == 0 => "-".to_owned(),
        Some(of) if of.state == "pending" && waits(stream) => "waiting".to_owned(),
        Some(of) if of.state == "pending" && of.due > 0 => format!("pending {}", of.due),
        Some(of) => of.state.clone(),
    }
}

/// What the proxy said of what it refused, on one line.
fn words(stream: &Stream, name: &str) -> Option<String> {
    let of: &OfType = stream.types.get(name).filter(|of| of.state == "refused")?;
    let words = &of.refused.as_ref()?.words;
    let mut line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > WORDS {
        line = line.chars().take(WORDS).chain(['…']).collect();
    }
    Some(format!("{name}: {line}"))
}

/// How long ago, in the two largest units that say something.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{}s", seconds % 60),
        (0, _, _) => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

fn sum(nodes: &Nodes) -> String {
    let streams = nodes.streams.len();
    let any = |state: &str| {
        let has = |stream: &&Stream| stream.types.values().any(|of| of.state == state);
        nodes.streams.iter().filter(|stream| !waits(stream)).filter(has).count()
    };
    let waiting = nodes.streams.iter().filter(|stream| waits(stream)).count();
    let (refusing, pending) = (any("refused"), any("pending"));
    let plural = if streams == 1 { "" } else { "s" };
    let served = nodes.generation.map_or_else(
        || "nothing is served yet".to_owned(),
        |generation| format!("snapshot {generation}"),
    );
    format!(
        "{streams} stream{plural}, {refusing} refusing, {pending} pending, {waiting} waiting; {served}"
    )
}

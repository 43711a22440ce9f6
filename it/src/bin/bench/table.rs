//! The table: a figure on a line, a server in a column, and ours in proportion to the floors.

use std::fmt::Write as _;

use crate::figures::{Change, Figures};
use crate::plan::Server;

/// A line: its words, and the figure.
type Line = (String, Box<dyn Fn(&Figures) -> f64>);

const MIB: f64 = 1024.0 * 1024.0;

fn lines() -> Vec<Line> {
    let line =
        |words: &str, figure: fn(&Figures) -> f64| -> Line { (words.to_owned(), Box::new(figure)) };
    let mut lines = vec![
        line("convergence: server CPU, s", |f| f.connect.cpu_s),
        line("  99th percentile, s", |f| f.converged_s),
        line("  bytes, MiB", |f| f.connect.bytes / MIB),
        line("highest memory, MiB", |f| f.peak / MIB),
        line("idle: server CPU, ms/s", |f| f.idle_ms),
    ];
    for change in Change::ALL {
        let of = move |f: &Figures| f.changes.get(&change).copied().unwrap_or_default();
        lines.push((format!("{}: CPU, ms", change.words()), Box::new(move |f| of(f).cpu_ms)));
        lines.push(("  99th percentile, ms".to_owned(), Box::new(move |f| of(f).p99_ms)));
        lines.push(("  bytes a stream, KiB".to_owned(), Box::new(move |f| of(f).bytes / 1024.0)));
    }
    lines.extend([
        line("reconnect storm: CPU, s", |f| f.storm.cpu_s),
        line("  until quiet, s", |f| f.storm.quiet_s),
        line("  bytes, MiB", |f| f.storm.bytes / MIB),
    ]);
    lines
}

/// The figures of some servers side by side. Where a floor is among them, ours in proportion to it.
pub fn compared(columns: &[(Server, Figures)]) -> String {
    let of = |wanted: Server| columns.iter().find(|(server, _)| *server == wanted).map(|of| &of.1);
    let ours = of(Server::Aether);
    let floors: Vec<(Server, &Figures)> = [Server::Floor, Server::FloorVhds]
        .into_iter()
        .filter_map(|floor| Some((floor, of(floor).filter(|_| ours.is_some())?)))
        .collect();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "{:34}", "");
    for (server, _) in columns {
        let _ = write!(text, "{server:>12}");
    }
    for (floor, _) in &floors {
        let _ = write!(text, "{:>14}", format!("/{floor}"));
    }
    text.push('\n');
    for (words, figure) in lines() {
        let _ = write!(text, "{words:34}");
        for (_, figures) in columns {
            let _ = write!(text, "{:>12}", number(figure(figures)));
        }
        for (_, floor) in &floors {
            let _ = write!(text, "{:>14}", ratio(ours.map_or(0.0, &figure), figure(floor)));
        }
        text.push('\n');
    }
    if columns.iter().any(|(_, figures)| figures.calibration.is_some()) {
        let _ = write!(text, "{:34}", "calibration before/after, ms");
        for (_, figures) in columns {
            let (before, after) = figures.calibration.unwrap_or_default();
            let _ = write!(text, "{:>12}", format!("{before:.0}/{after:.0}"));
        }
        text.push('\n');
    }
    text
}

/// A figure with as many digits as tell something.
fn number(figure: f64) -> String {
    match figure {
        _ if figure >= 100.0 => format!("{figure:.0}"),
        _ if figure >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

/// One figure in proportion to another; nothing where that is none.
fn ratio(of: f64, to: f64) -> String {
    if to > 0.0 { format!("{:.2} x", of / to) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::figures::{Cost, Phase};

    fn figures(cpu_s: f64, http_ms: f64) -> Figures {
        let cost = Cost { cpu_ms: http_ms, ..Cost::default() };
        Figures {
            connect: Phase { cpu_s, ..Phase::default() },
            changes: [(Change::Http, cost)].into(),
            ..Figures::default()
        }
    }

    #[test]
    fn ours_stands_in_proportion_to_each_floor() {
        let columns = [
            (Server::Aether, figures(1.0, 90.0)),
            (Server::Floor, figures(2.0, 450.0)),
            (Server::FloorVhds, figures(0.0, 100.0)),
        ];
        let text = compared(&columns);
        let line = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start)).unwrap();
            line.get(start.len()..).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("convergence: server CPU, s"), "1.00 2.00 0.00 0.50 x -");
        assert_eq!(line("an HTTP service is added: CPU, ms"), "90.0 450 100 0.20 x 0.90 x");
        assert!(!text.contains("calibration"), "{text}");
        assert!(!compared(&[(Server::Aether, figures(1.0, 1.0))]).contains(" x"));
    }
}

//! What differs between what was expected and what was found.

use std::fmt::Write as _;

use crate::exact::View;

/// All that was found to differ.
#[derive(Debug, Default)]
pub struct Differences {
    compared: usize,
    found: Vec<String>,
}

impl Differences {
    /// Compares two views of one exchange.
    pub fn compare(&mut self, of: &str, expected: &View, found: &View) {
        self.compared += 1;
        if expected != found {
            self.found.push(format!("{of}:\n{}", difference(expected, found)));
        }
    }

    /// Fails if anything differed, or if less was compared than this.
    pub fn none(&self, least: usize) {
        assert!(self.compared >= least, "{} were compared, {least} are wanted", self.compared);
        let (many, first) =
            (self.found.len(), self.found.iter().take(20).cloned().collect::<Vec<_>>());
        let text = first.join("\n");
        assert!(many == 0, "{many} of {} exchanges differ; the first:\n{text}", self.compared);
    }
}

/// What differs: the lines of both views, those of one alone marked, `-` expected and `+` found.
fn difference(expected: &View, found: &View) -> String {
    let (a, b) = (expected.lines(), found.lines());
    let mut text = String::new();
    // The longest common lines, by the usual table: the views have some tens of them.
    let mut common = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = if a[i] == b[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (mark, line) = if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
            (' ', &a[i - 1])
        } else if i < a.len() && (j == b.len() || common[i + 1][j] >= common[i][j + 1]) {
            i += 1;
            ('-', &a[i - 1])
        } else {
            j += 1;
            ('+', &b[j - 1])
        };
        let _ = writeln!(text, "{mark} {line}");
    }
    text
}

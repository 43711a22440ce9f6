//! The documents of a YAML stream, found by their markers alone, so that a broken one costs itself
//! and none of its neighbours.

/// One document of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Document<'a> {
    /// Which one, from 1 on.
    pub(super) number: usize,
    /// Its text, with the marker that begins it.
    pub(super) text: &'a str,
    /// How many lines of the file come before it.
    pub(super) lines_before: usize,
}

impl Document<'_> {
    /// Whether there is nothing in it but its marker, comments and white space.
    pub(super) fn is_empty(&self) -> bool {
        let body = self.text.strip_prefix("---").unwrap_or(self.text);
        // After its marker a directive is a mistake, which the parser is to find.
        body.lines().all(|line| !has_content(line) && !line.trim_start().starts_with('%'))
    }
}

/// Splits a stream at its markers: lines that begin with `---` (which begins a document) or `...`
/// (which ends one) and go on with white space or not at all. No text of a document can hold such
/// a line, block scalars included: YAML forbids it at the start of a line. What stands outside of
/// any marker counts as a document only where there is more in it than comments and directives.
///
/// Each document is given to `take` as it is found: of a large file there may be millions.
pub(super) fn documents<'a>(text: &'a str, mut take: impl FnMut(Document<'a>)) {
    let mut number = 0;
    let mut start = (0, 0);
    let mut marked = false;
    let mut offset = 0;
    let mut close = |from: (usize, usize), to: usize, marked: bool| {
        let chunk = text.get(from.0..to).unwrap_or_default();
        if marked || chunk.lines().any(has_content) {
            number += 1;
            take(Document { number, text: chunk, lines_before: from.1 });
        }
    };
    for (lines, line) in text.split_inclusive('\n').enumerate() {
        let end = offset + line.len();
        if is_marker(line, "---") {
            close(start, offset, marked);
            start = (offset, lines);
            marked = true;
        } else if is_marker(line, "...") {
            close(start, offset, marked);
            start = (end, lines + 1);
            marked = false;
        }
        offset = end;
    }
    close(start, offset, marked);
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| {
        rest.chars().next().is_none_or(|next| matches!(next, ' ' | '\t' | '\r' | '\n'))
    })
}

fn has_content(line: &str) -> bool {
    let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    !line.is_empty() && !line.starts_with(['#', '%'])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    /// Number, text and lines before.
    type Shown<'a> = (usize, &'a str, usize);

    fn split(text: &str) -> Vec<Shown<'_>> {
        let mut found = Vec::new();
        documents(text, |d| found.push((d.number, d.text, d.lines_before)));
        found
    }

    #[test]
    fn streams_split_at_markers_and_nowhere_else() {
        let table: &[(&str, &[Shown<'_>])] = &[
            ("", &[]),
            ("# nothing\n\n", &[]),
            ("a: 1", &[(1, "a: 1", 0)]),
            ("---\na: 1\n", &[(1, "---\na: 1\n", 0)]),
            ("a: 1\n---\nb: 2\n", &[(1, "a: 1\n", 0), (2, "---\nb: 2\n", 1)]),
            ("%YAML 1.2\n---\na: 1\n", &[(1, "---\na: 1\n", 1)]),
            ("# c\n--- # d\r\na: 1\r\n", &[(1, "--- # d\r\na: 1\r\n", 1)]),
            ("a: |\n  ---\n  x\n", &[(1, "a: |\n  ---\n  x\n", 0)]),
            ("---\n---\na: 1", &[(1, "---\n", 0), (2, "---\na: 1", 1)]),
            ("a: 1\n...\n# end\n", &[(1, "a: 1\n", 0)]),
            ("a: 1\n...\nb: 2\n", &[(1, "a: 1\n", 0), (2, "b: 2\n", 2)]),
            ("---x\n----\n", &[(1, "---x\n----\n", 0)]),
        ];
        for (text, expected) in table {
            assert_eq!(split(text), *expected, "{text:?}");
        }
    }

    #[test]
    fn what_holds_nothing_is_known_without_a_parser() {
        for (text, empty) in [
            ("---\n", true),
            ("--- # nothing\n\n  # here\n", true),
            ("---\r\n\t\r\n", true),
            ("---", true),
            ("--- x\n", false),
            ("---\nnull\n", false),
            ("---\n%TAG\n", false),
            ("---\n# a\n-\n", false),
            ("a: 1", false),
        ] {
            let document = Document { number: 1, text, lines_before: 0 };
            assert_eq!(document.is_empty(), empty, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_of_a_document_is_lost(text in "([a-z]{0,3}|---|---\\s|\\.\\.\\.|#|%|\n|\r\n){0,40}") {
            let mut kept = 0;
            documents(&text, |document| {
                let rest: String =
                    text.split_inclusive('\n').skip(document.lines_before).collect();
                assert!(rest.starts_with(document.text));
                kept += document.text.lines()
                    .filter(|line| has_content(line) && !is_marker(line, "---")).count();
            });
            let all: usize = text.lines()
                .filter(|line| has_content(line) && !is_marker(line, "---") && !is_marker(line, "...")).count();
            prop_assert_eq!(kept, all);
        }
    }
}

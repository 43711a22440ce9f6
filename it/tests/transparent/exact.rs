//! What both ends saw of an exchange, by the byte, and how two such views differ.

use std::fmt::Write as _;

use it::wire::{Framing, Head, Message};

/// A message, or the head of a 1xx answer, cut into lines but otherwise as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The start line.
    pub start: Vec<u8>,
    /// The field lines, in their order.
    pub fields: Vec<Field>,
    /// How the body was framed. Where chunks end is no part of it.
    pub framing: Framing,
    /// The body.
    pub body: Vec<u8>,
    /// The trailer lines.
    pub trailers: Vec<Field>,
}

/// A field line, cut at its first colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// What stands before the colon.
    pub name: Vec<u8>,
    /// What stands after it, white space included.
    pub value: Vec<u8>,
}

/// One exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// What reached the backend: one request, unless something went wrong.
    pub asked: Vec<Part>,
    /// The 1xx answers that the client got.
    pub interim: Vec<Part>,
    /// The answer that it got, or what happened instead.
    pub answer: Result<Part, String>,
    /// Whether the connection ended after it.
    pub ended: bool,
}

impl Part {
    /// The message that these bytes were.
    pub fn of(message: &Message) -> Self {
        let mut part = Self::head(&message.head);
        part.framing = message.framing;
        part.body.clone_from(&message.body);
        part.trailers = lines(&message.trailers).map(field).collect();
        part
    }

    /// A head alone.
    pub fn head(head: &Head) -> Self {
        let mut lines = lines(head);
        let start = lines.next().unwrap_or_default().to_vec();
        Self { start, fields: lines.map(field).collect(), ..Self::default() }
    }

    /// Whether it has a field of this name, in any case.
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.is(name))
    }

    /// Its first field of this name, in any case, without the white space around it.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        Some(self.fields.iter().find(|field| field.is(name))?.value.trim_ascii())
    }

    fn lines(&self, of: &str) -> Vec<String> {
        let mut lines = vec![format!("{of}  {}", self.start.escape_ascii())];
        let of_field = |f: &Field| format!("{}:{}", f.name.escape_ascii(), f.value.escape_ascii());
        lines.extend(self.fields.iter().map(|f| format!("{of}  {}", of_field(f))));
        let body: String = self.body.escape_ascii().to_string().chars().take(200).collect();
        lines.push(format!("{of}  ({:?}, {} bytes: {body})", self.framing, self.body.len()));
        lines.extend(self.trailers.iter().map(|f| format!("{of}  trailer {}", of_field(f))));
        lines
    }
}

impl Field {
    /// A field as a proxy writes it.
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: name.into(), value: format!(" {value}").into() }
    }

    /// Whether it bears this name, in any case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

impl Default for View {
    fn default() -> Self {
        let (asked, interim) = (Vec::new(), Vec::new());
        Self { asked, interim, answer: Err("nothing was asked".to_owned()), ended: false }
    }
}

impl View {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for part in &self.asked {
            lines.extend(part.lines("backend"));
        }
        for part in &self.interim {
            lines.extend(part.lines("interim"));
        }
        match &self.answer {
            Ok(part) => lines.extend(part.lines("client ")),
            Err(what) => lines.push(format!("client   {what}")),
        }
        lines.push(format!("connection {}", if self.ended { "ended" } else { "kept" }));
        lines
    }
}

/// What differs: the lines of both views, those of one alone marked, `-` expected and `+` found.
pub fn difference(expected: &View, found: &View) -> String {
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

fn lines(head: &Head) -> impl Iterator<Item = &[u8]> {
    head.0
        .split(|byte| *byte == b'\n')
        .map(|l| l.strip_suffix(b"\r").unwrap_or(l))
        .filter(|l| !l.is_empty())
}

fn field(line: &[u8]) -> Field {
    let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
    let value = line.get(colon + 1..).unwrap_or_default();
    Field { name: line[..colon].to_vec(), value: value.to_vec() }
}

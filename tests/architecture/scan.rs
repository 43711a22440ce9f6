//! Rust as text: enough of it to tell code from comments, strings and tests.

/// The code without comments and without the content of string literals.
pub fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if rest.starts_with("/*") {
            rest = &rest[rest.find("*/").map_or(rest.len(), |end| end + 2)..];
        } else if rest.starts_with("r#\"") {
            out.push_str("\"\"");
            rest = &rest[rest.find("\"#").map_or(rest.len(), |end| end + 2)..];
        } else if rest.starts_with("'\"'") {
            rest = &rest[3..];
        } else if next == '"' {
            out.push_str("\"\"");
            rest = after_string(&rest[1..]);
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}

/// What follows the end of a string literal whose first quote is gone.
fn after_string(text: &str) -> &str {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

/// The code up to the tests inside the file, which stand at its end.
pub fn without_tests(code: &str) -> String {
    let tests = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
    code[..tests].to_owned()
}

/// All paths that follow a start such as `crate::`, with groups taken apart: of
/// `crate::{a, b::{c, d}}` these are `a`, `b::c` and `b::d`.
pub fn paths_after(code: &str, start: &str) -> Vec<String> {
    let mut flat = code.split_whitespace().collect::<Vec<_>>().join(" ");
    for (loose, tight) in [(":: ", "::"), (" ::", "::"), ("{ ", "{"), (", ", ",")] {
        flat = flat.replace(loose, tight);
    }
    let mut found = Vec::new();
    for (at, _) in flat.match_indices(start) {
        expand("", &flat[at + start.len()..], &mut found);
    }
    found
}

/// Reads one path, or a group of them, and returns what follows.
fn expand<'a>(before: &str, text: &'a str, found: &mut Vec<String>) -> &'a str {
    if let Some(mut rest) = text.strip_prefix('{') {
        while !rest.is_empty() && !rest.starts_with('}') {
            let after = expand(before, rest, found);
            rest = after.find([',', '}']).map_or("", |end| &after[end..]);
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let path = format!("{before}{}", &text[..end]);
    if let Some(rest) = text[end..].strip_prefix("::") {
        return expand(&format!("{path}::"), rest, found);
    }
    found.push(path);
    &text[end..]
}

/// Whether a word stands in the code as a word.
pub fn has_word(code: &str, word: &str) -> bool {
    let inside = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word).any(|(at, _)| {
        !code[..at].ends_with(inside) && !code[at + word.len()..].starts_with(inside)
    })
}

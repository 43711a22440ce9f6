//! A key that stands twice in one object. YAML forbids it; readers of JSON take the last value in
//! silence, so that half of what somebody wrote counts, and nobody says which half.

use std::borrow::Cow;

use crate::model::quoted;

/// What to do about it, whichever form the manifest has.
pub(super) const WAY_OUT: &str = "remove one of the two, or put what both hold under one of them";

/// Such a key, in the words of a finding.
pub(super) fn message(key: &str) -> String {
    format!("the key {} stands twice in one object", quoted(key))
}

/// A key that stands twice, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repeated {
    /// The key.
    pub(super) key: String,
    /// Its path in the text, as in `spec.ports[1].name`.
    pub(super) path: String,
}

/// An object or a list that is open.
struct Open {
    /// How many keys were open before it.
    keys: usize,
    /// In a list, which item it is at; `None`: an object.
    item: Option<usize>,
}

/// Finds the first object to end with a key that stands twice in it, in a text that is JSON.
/// Without recursion, and with time for each byte once, so that no depth and no size costs more.
pub(super) fn repeated(json: &str) -> Option<Repeated> {
    let bytes = json.as_bytes();
    let mut keys: Vec<Cow<'_, str>> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut key_is_next = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => {
                open.push(Open { keys: keys.len(), item: None });
                key_is_next = true;
            }
            b'[' => open.push(Open { keys: keys.len(), item: Some(0) }),
            b'}' => {
                key_is_next = false;
                let ended = open.pop()?;
                let own = keys.get_mut(ended.keys..)?;
                own.sort_unstable();
                let twice = own.windows(2).find(|pair| pair.first() == pair.last());
                if let Some(key) = twice.and_then(|pair| pair.first()).map(ToString::to_string) {
                    open.push(ended);
                    return Some(Repeated { path: path(&open, &keys, &key), key });
                }
                keys.truncate(ended.keys);
            }
            b']' => drop(open.pop()),
            b',' => match open.last_mut().and_then(|open| open.item.as_mut()) {
                Some(item) => *item += 1,
                None => key_is_next = true,
            },
            b'"' => {
                let end = end_of_text(bytes, at + 1);
                if std::mem::take(&mut key_is_next) {
                    keys.push(text(json, at, end));
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the closing quote of a text is that begins here.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(rest) = bytes.get(at..) {
        match rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
            Some(to) if rest.get(to) == Some(&b'"') => return at + to,
            Some(to) => at += to + 2,
            None => break,
        }
    }
    bytes.len()
}

/// The text between two quotes.
fn text(json: &str, quote: usize, end: usize) -> Cow<'_, str> {
    let plain = json.get(quote + 1..end).unwrap_or_default();
    if !plain.contains('\\') {
        return Cow::Borrowed(plain);
    }
    let read = json.get(quote..=end).and_then(|quoted| serde_json::from_str(quoted).ok());
    read.map_or(Cow::Borrowed(plain), Cow::Owned)
}

/// The path of a key of the innermost object that is open.
fn path(open: &[Open], keys: &[Cow<'_, str>], key: &str) -> String {
    let mut path = String::new();
    let inner = open.iter().skip(1).map(|inner| inner.keys);
    for (outer, inner) in open.iter().zip(inner) {
        if let Some(item) = outer.item {
            path.push_str(&format!("[{item}]"));
        } else {
            // The key that an object is at is its last one.
            let at = inner.checked_sub(1).and_then(|last| keys.get(last));
            append(&mut path, at.map_or("", |key| key));
        }
    }
    append(&mut path, key);
    path
}

fn append(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_key_stands_once_in_each_object() {
        let table = [
            (r#"{"a":1,"a":2}"#, Some(("a", "a"))),
            (r#"{ "a" : 1 , "b" : 3, "a" : 2 }"#, Some(("a", "a"))),
            (r#"{"a":{"b":1},"b":1}"#, None),
            (r#"{"a":["a","a"],"b":"a"}"#, None),
            (r#"{"a":[{"b":1},{"b":1}]}"#, None),
            (r#"{"x":{"y":[0,[],{"c":[1,2]},{"b":1,"d":{},"b":1}]}}"#, Some(("x.y[3].b", "b"))),
            (r#"[[{"a":1}],[{"b":"},{","b":1}]]"#, Some(("[1][0].b", "b"))),
            (r#"{"a\"":1,"a":2}"#, None),
            (r#"{"a\\":1,"a":2}"#, None),
            ("{\"\\u0061\":1,\"a\":2}", Some(("a", "a"))),
            (r#"{"":1,"":2}"#, Some(("", ""))),
            (r#"{"é":{},"b":{"é":1,"c":[],"é":2}}"#, Some(("b.é", "é"))),
            ("{}", None),
            ("[]", None),
            ("\"a\"", None),
            ("17", None),
        ];
        for (json, expected) in table {
            let found = repeated(json);
            let found = found.as_ref().map(|found| (found.path.as_str(), found.key.as_str()));
            assert_eq!(found, expected, "{json}");
        }
    }

    #[test]
    fn neither_depth_nor_width_costs_more_than_its_bytes() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(200_000), "}".repeat(200_000));
        assert_eq!(repeated(&deep), None);
        let wide: Vec<String> = (0..100_000).map(|n| format!("\"k{n}\":{n}")).collect();
        assert_eq!(repeated(&format!("{{{}}}", wide.join(","))), None);
        let twice = format!("{{{},\"k7\":1}}", wide.join(","));
        assert_eq!(repeated(&twice).unwrap().key, "k7");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<Option<bool>>().prop_map(|b| b.map_or(Value::Null, Value::Bool)),
            any::<i32>().prop_map(Value::from),
            "[a-c\"\\\\{}\\[\\],: é]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-c\"\\\\{},: é]{0,3}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_of_maps_has_none_and_a_second_copy_is_found(value in values()) {
            let json = value.to_string();
            prop_assert_eq!(repeated(&json), None);
            let twice = format!(r#"{{"k":{json},"x":[{json},{{"q":1,"w":{json},"q":2}}]}}"#);
            let expected = Repeated { key: "q".into(), path: "x[1].q".into() };
            prop_assert_eq!(repeated(&twice), Some(expected));
        }
    }
}

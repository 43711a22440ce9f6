//! The table: what the snapshot file says, made ready for look-ups.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::model::{RecordsFile, ServiceKey, is_dns_label};

/// The addresses of one name; at least one is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Addresses {
    /// For `A`.
    pub v4: Option<Ipv4Addr>,
    /// For `AAAA`.
    pub v6: Option<Ipv6Addr>,
}

/// What a name below the mesh domain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A name with addresses.
    Name(Addresses),
    /// A name that has nothing itself and names below it: the domain, or a namespace.
    Empty,
    /// The name that proves the way to this table.
    SelfCheck,
    /// No name.
    Nothing,
}

/// The name below the mesh domain that proves the path from a client to a table.
pub const SELF_CHECK: &str = "_selfcheck";

/// Addresses by name, as one snapshot file gives them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// The file's own generation.
    pub generation: u64,
    /// When the file was written or stamped, in Unix seconds.
    pub written_at: u64,
    /// Namespace to mesh name to addresses.
    names: HashMap<Arc<str>, HashMap<Arc<str>, Addresses>>,
    /// Short name to addresses.
    short: HashMap<Arc<str>, Addresses>,
}

/// An entry of the file that cannot be used; the others are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {key:?}: {value:?} is left out: {reason}")]
pub struct Rejected {
    /// The field of the file.
    pub field: &'static str,
    /// The entry's key.
    pub key: String,
    /// The entry's value.
    pub value: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl Table {
    /// Takes what can be used of a file, and says what cannot.
    pub fn new(file: &RecordsFile) -> (Self, Vec<Rejected>) {
        let mut rejected = Vec::new();
        let mut all: HashMap<ServiceKey, Addresses> = HashMap::new();
        for (field, entries) in [("records", &file.records), ("records6", &file.records6)] {
            for (key, value) in entries {
                let wrong =
                    |reason| Rejected { field, key: key.clone(), value: value.clone(), reason };
                let service = match key.parse::<ServiceKey>() {
                    Ok(service) => service,
                    Err(error) => {
                        rejected.push(wrong(error.to_string()));
                        continue;
                    }
                };
                let entry = all.entry(service).or_default();
                let taken = if field == "records" {
                    value.parse().map(|ip| entry.v4 = Some(ip)).map_err(|_| "an IPv4 address")
                } else {
                    value.parse().map(|ip| entry.v6 = Some(ip)).map_err(|_| "an IPv6 address")
                };
                if let Err(what) = taken {
                    rejected.push(wrong(format!("the value has to be {what}")));
                }
            }
        }
        all.retain(|_, addresses| *addresses != Addresses::default());
        let mut short = HashMap::new();
        for (name, key) in &file.short {
            let owner = key.parse::<ServiceKey>().ok().and_then(|key| all.get(&key));
            match owner {
                Some(addresses) if is_dns_label(name) => {
                    short.insert(name.as_str().into(), *addresses);
                }
                _ => rejected.push(Rejected {
                    field: "short",
                    key: name.clone(),
                    value: key.clone(),
                    reason: "the key has to be one DNS label and the value a key of the records"
                        .to_owned(),
                }),
            }
        }
        let mut names: HashMap<Arc<str>, HashMap<Arc<str>, Addresses>> = HashMap::new();
        for (key, addresses) in all {
            names.entry(key.namespace).or_default().insert(key.name, addresses);
        }
        let table = Self { generation: file.generation, written_at: file.written_at, names, short };
        (table, rejected)
    }

    /// How many names have addresses, short ones not counted.
    pub fn len(&self) -> usize {
        self.names.values().map(HashMap::len).sum()
    }

    /// Whether no name has.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many namespaces have names.
    pub fn namespaces(&self) -> HashSet<&str> {
        self.names.keys().map(|namespace| &**namespace).collect()
    }

    /// What the labels before the mesh domain name, first label first, in lower case. A short
    /// name that is spelled like a namespace answers, and the names below it still do.
    pub fn find(&self, labels: &[&str]) -> Found {
        match labels {
            [] => Found::Empty,
            [one] if *one == SELF_CHECK => Found::SelfCheck,
            [one] => match self.short.get(*one) {
                Some(addresses) => Found::Name(*addresses),
                None if self.names.contains_key(*one) => Found::Empty,
                None => Found::Nothing,
            },
            [name, namespace] => {
                let found = self.names.get(*namespace).and_then(|names| names.get(*name));
                found.map_or(Found::Nothing, |addresses| Found::Name(*addresses))
            }
            _ => Found::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    fn file(json: &str) -> RecordsFile {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn names_are_found_by_both_spellings_and_by_no_other() {
        let (table, rejected) = Table::new(&file(
            r#"{"writtenAt":9,"generation":4,
                "records":{"shop/cart":"10.96.0.7","cart/db":"10.96.0.8","pay/pay":"10.96.0.9"},
                "records6":{"shop/cart":"fd00::7","six/only":"fd00::8"},
                "short":{"cart":"shop/cart","pay":"pay/pay"}}"#,
        ));
        assert_eq!(rejected, []);
        assert_eq!((table.len(), table.generation, table.written_at), (4, 4, 9));
        let both = Addresses {
            v4: Some("10.96.0.7".parse().unwrap()),
            v6: Some("fd00::7".parse().unwrap()),
        };
        let of = |labels: &[&str]| table.find(labels);
        assert_eq!(of(&["cart", "shop"]), Found::Name(both));
        // A short name that is spelled like a namespace, and what is below it.
        assert_eq!(of(&["cart"]), Found::Name(both));
        assert!(matches!(of(&["db", "cart"]), Found::Name(a) if a.v6.is_none()));
        assert!(matches!(of(&["only", "six"]), Found::Name(a) if a.v4.is_none()));
        for empty in [&[][..], &["shop"], &["six"]] {
            assert_eq!(of(empty), Found::Empty, "{empty:?}");
        }
        assert!(matches!(of(&["pay"]), Found::Name(_)), "a short name and its own namespace");
        for nothing in
            [&["only"][..], &["x"], &["x", "shop"], &["shop", "cart"], &["a", "cart", "shop"]]
        {
            assert_eq!(of(nothing), Found::Nothing, "{nothing:?}");
        }
        assert_eq!(of(&["_selfcheck"]), Found::SelfCheck);
        assert_eq!(of(&["_selfcheck", "shop"]), Found::Nothing);
    }

    #[test]
    fn a_wrong_entry_costs_itself_alone() {
        let (table, rejected) = Table::new(&file(
            r#"{"writtenAt":1,"generation":1,
                "records":{"shop/cart":"10.96.0.7","shop":"10.0.0.1","a/b/c":"10.0.0.1",
                           "/x":"10.0.0.1","Shop/x":"10.0.0.1","shop/six":"fd00::1","shop/no":"ten"},
                "records6":{"shop/four":"10.0.0.1"},
                "short":{"cart":"shop/cart","gone":"shop/gone","C":"shop/cart","bad":"shop"}}"#,
        ));
        let keys: Vec<_> = rejected.iter().map(|r| (r.field, r.key.as_str())).collect();
        let expected = [
            ("records", "/x"),
            ("records", "Shop/x"),
            ("records", "a/b/c"),
            ("records", "shop"),
            ("records", "shop/no"),
            ("records", "shop/six"),
            ("records6", "shop/four"),
            ("short", "C"),
            ("short", "bad"),
            ("short", "gone"),
        ];
        assert_eq!(keys, expected);
        assert_eq!(table.len(), 1);
        assert!(matches!(table.find(&["cart"]), Found::Name(_)));
        assert_eq!(table.find(&["six", "shop"]), Found::Nothing);
        let told = rejected[5].to_string();
        assert!(
            told.contains("shop/six") && told.contains("fd00::1") && told.contains("IPv4"),
            "{told}"
        );
    }
}

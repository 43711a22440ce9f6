//! The content of the mesh-DNS snapshot file, as its writer makes it and its readers take it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Records;

/// One JSON object. Keys and addresses are text here, so that a reader can reject one of them
/// alone; fields that it does not know are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordsFile {
    /// When the reconciler last vouched for the records, in Unix seconds.
    pub written_at: u64,
    /// Rises by one when the records change, and only then.
    pub generation: u64,
    /// Key to IPv4 address: `{"shop/cart": "10.96.0.7"}`.
    pub records: BTreeMap<String, String>,
    /// Key to IPv6 address, left out when empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub records6: BTreeMap<String, String>,
    /// Short name to key: `{"cart": "shop/cart"}`.
    #[serde(default)]
    pub short: BTreeMap<String, String>,
}

impl RecordsFile {
    /// The content that follows on `before`, the file's last one: the generation rises where the
    /// records differ, and stays where they do not. The first one of all is generation 1.
    pub fn following(before: Option<&Self>, records: &Records, written_at: u64) -> Self {
        let text =
            |(key, value): (&dyn ToString, &dyn ToString)| (key.to_string(), value.to_string());
        let mut next = Self {
            written_at,
            generation: 1,
            records: records.v4.iter().map(|(key, ip)| text((key, ip))).collect(),
            records6: records.v6.iter().map(|(key, ip)| text((key, ip))).collect(),
            short: records.short.iter().map(|(name, key)| text((name, key))).collect(),
        };
        if let Some(before) = before {
            let rises = u64::from(!next.says_what(before));
            next.generation = before.generation.saturating_add(rises);
        }
        next
    }

    /// Whether both hold the same records.
    fn says_what(&self, other: &Self) -> bool {
        self.records == other.records
            && self.records6 == other.records6
            && self.short == other.short
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::model::ServiceKey;

    fn records(v4: &[(&str, &str)], v6: &[(&str, &str)], short: &[(&str, &str)]) -> Records {
        let key = |text: &str| text.parse::<ServiceKey>().unwrap();
        Records {
            v4: v4.iter().map(|(k, ip)| (key(k), ip.parse().unwrap())).collect(),
            v6: v6.iter().map(|(k, ip)| (key(k), ip.parse().unwrap())).collect(),
            short: short.iter().map(|(name, k)| ((*name).into(), key(k))).collect(),
        }
    }

    #[test]
    fn the_text_is_that_of_the_contract() {
        let all = records(
            &[("shop/cart", "10.96.0.7")],
            &[("shop/cart", "fd00::7")],
            &[("cart", "shop/cart")],
        );
        let text =
            serde_json::to_string(&RecordsFile::following(None, &all, 1_700_000_000)).unwrap();
        assert_eq!(
            text,
            r#"{"writtenAt":1700000000,"generation":1,"records":{"shop/cart":"10.96.0.7"},"records6":{"shop/cart":"fd00::7"},"short":{"cart":"shop/cart"}}"#
        );
        let none = serde_json::to_string(&RecordsFile::following(None, &Records::default(), 5));
        assert_eq!(none.unwrap(), r#"{"writtenAt":5,"generation":1,"records":{},"short":{}}"#);
    }

    #[test]
    fn the_generation_rises_by_one_with_the_records_and_never_else() {
        let one = records(&[("a/a", "10.0.0.1")], &[], &[("a", "a/a")]);
        let first = RecordsFile::following(None, &one, 10);
        let stamped = RecordsFile::following(Some(&first), &one, 70);
        assert_eq!((first.generation, stamped.generation, stamped.written_at), (1, 1, 70));
        // A change of any of the three parts is a change.
        for other in [
            records(&[("a/a", "10.0.0.2")], &[], &[("a", "a/a")]),
            records(&[("a/a", "10.0.0.1")], &[("a/a", "fd00::1")], &[("a", "a/a")]),
            records(&[("a/a", "10.0.0.1")], &[], &[]),
        ] {
            let next = RecordsFile::following(Some(&stamped), &other, 71);
            assert_eq!(next.generation, 2, "{other:?}");
            assert_eq!(RecordsFile::following(Some(&next), &other, 72).generation, 2);
            // Back to what it was is a change as well.
            assert_eq!(RecordsFile::following(Some(&next), &one, 73).generation, 3);
        }
    }

    #[test]
    fn a_file_goes_there_and_back() {
        let all = records(&[("shop/cart", "10.96.0.7")], &[("b/b", "fd00::7")], &[("b", "b/b")]);
        let file = RecordsFile::following(None, &all, 3);
        let text = serde_json::to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<RecordsFile>(&text).unwrap(), file);
        let later = text.replacen('{', r#"{"later":[1],"#, 1);
        assert_eq!(serde_json::from_str::<RecordsFile>(&later).unwrap(), file);
        for broken in ["", "{", "{}", "[]", r#"{"writtenAt":1,"generation":1}"#] {
            assert!(serde_json::from_str::<RecordsFile>(broken).is_err(), "{broken}");
        }
    }
}

//! The values of `inject`'s own options.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::model::is_dns_label;

/// A namespace's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(pub String);

impl FromStr for Namespace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || "no name of a namespace: write a-z, 0-9 and '-', as in shop".to_owned();
        is_dns_label(text).then(|| Self(text.to_owned())).ok_or_else(error)
    }
}

/// Labels, as `kubectl label` takes them, with commas between.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(pub BTreeMap<String, String>);

impl FromStr for Labels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let label = |word: &str| match word.trim().split_once('=') {
            Some((key, value)) if !key.is_empty() && !key.contains(char::is_whitespace) => {
                Ok((key.to_owned(), value.to_owned()))
            }
            _ => {
                Err(format!("{word:?} is no label: write key=value, as in aether.io/managed=true"))
            }
        };
        let words = text.split(',').filter(|_| !text.trim().is_empty());
        words.map(label).collect::<Result<_, _>>().map(Self)
    }
}

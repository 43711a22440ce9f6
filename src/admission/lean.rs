//! Reads a pod without what no decision looks at. Most of a review is that: the environment of
//! containers, and who manages which field. It is skipped where it stands, so that no memory is
//! taken for it.
//!
//! A patch names places in lists and maps. Lists keep all their items and maps of which something
//! is added to keep all their fields, so that places are the same in the pod as it came.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// How a value is read.
#[derive(Clone, Copy)]
enum Part {
    /// All of it.
    Whole,
    /// Not at all.
    Nothing,
    /// A map: these fields in these ways, all others whole.
    Fields(&'static [(&'static str, Self)]),
    /// A list: each item in this way.
    Items(&'static Self),
}

const CONTAINER: Part = Part::Fields(&[
    ("args", Part::Nothing),
    ("env", Part::Nothing),
    ("envFrom", Part::Nothing),
    ("lifecycle", Part::Nothing),
    ("livenessProbe", Part::Nothing),
    ("ports", Part::Nothing),
    ("readinessProbe", Part::Nothing),
    ("securityContext", Part::Nothing),
    ("startupProbe", Part::Nothing),
]);

const POD: Part = Part::Fields(&[
    (
        "metadata",
        Part::Fields(&[("managedFields", Part::Nothing), ("ownerReferences", Part::Nothing)]),
    ),
    (
        "spec",
        Part::Fields(&[
            ("affinity", Part::Nothing),
            ("containers", Part::Items(&CONTAINER)),
            ("initContainers", Part::Items(&CONTAINER)),
            ("tolerations", Part::Nothing),
            ("topologySpreadConstraints", Part::Nothing),
        ]),
    ),
    ("status", Part::Nothing),
]);

/// A pod of which a decision needs no more.
///
/// # Errors
/// Where the text is no JSON.
pub(super) fn pod(json: &str) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let pod = de::DeserializeSeed::deserialize(POD, &mut reader)?;
    reader.end()?;
    Ok(pod)
}

impl<'de> de::DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        match self {
            Self::Whole => Value::deserialize(from),
            Self::Nothing => IgnoredAny::deserialize(from).map(|_| Value::Null),
            Self::Fields(_) | Self::Items(_) => from.deserialize_any(self),
        }
    }
}

/// What is of another type than expected is read whole: to judge it is not this module's business.
impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let fields = match self {
            Self::Fields(fields) => fields,
            _ => &[],
        };
        let mut map = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let part = fields.iter().find(|(field, _)| *field == name);
            match part.map_or(Self::Whole, |(_, part)| *part) {
                Self::Nothing => drop(from.next_value::<IgnoredAny>()?),
                part => drop(map.insert(name, from.next_value_seed(part)?)),
            }
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let item = match self {
            Self::Items(item) => *item,
            _ => Self::Whole,
        };
        let mut list = Vec::new();
        while let Some(value) = from.next_element_seed(item)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    fn read(pod: &Value) -> Value {
        super::pod(&pod.to_string()).unwrap()
    }

    #[test]
    fn what_decides_is_read_and_what_is_large_is_not() {
        let full = json!({
            "metadata": { "name": "a", "labels": { "env": "x" }, "managedFields": [{ "a": {} }], "future": 1.5 },
            "spec": {
                "containers": [{ "name": "web", "env": [{ "name": "A" }], "resources": {} }, {}],
                "initContainers": [{ "name": "gate", "command": ["c"], "args": ["x"] }],
                "volumes": [{ "name": "v", "env": 1 }],
                "affinity": {},
            },
            "status": { "phase": "Pending" },
        });
        let lean = json!({
            "metadata": { "name": "a", "labels": { "env": "x" }, "future": 1.5 },
            "spec": {
                "containers": [{ "name": "web", "resources": {} }, {}],
                "initContainers": [{ "name": "gate", "command": ["c"] }],
                "volumes": [{ "name": "v", "env": 1 }],
            },
        });
        assert_eq!(read(&full), lean);
    }

    #[test]
    fn what_has_another_type_is_read_as_it_came() {
        for odd in [
            json!(null),
            json!([1, -1, 1.5, true, "text"]),
            json!({ "metadata": [{ "managedFields": 1 }], "spec": "x" }),
            json!({ "spec": { "containers": { "env": 1 }, "initContainers": [1, null, [2]] } }),
            json!({ "metadata": null, "spec": { "containers": 3 } }),
        ] {
            assert_eq!(read(&odd), odd);
        }
        assert_eq!(super::pod(r#"{"spec":1,"spec":2}"#).unwrap(), json!({ "spec": 2 }));
        for wrong in ["", "{", "{} {}", r#"{"status":{"a":}}"#, r#"{"status":1"#] {
            assert!(super::pod(wrong).is_err(), "{wrong}");
        }
    }
}

//! The order of the keys of a document, so that it comes out as it went in: JSON values here sort
//! their keys.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

/// The keys of each map of a document, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Order {
    /// No map and no list.
    #[default]
    Leaf,
    /// A list.
    List(Vec<Order>),
    /// A map.
    Map(Vec<(String, Order)>),
}

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Order;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Order, A::Error> {
        let mut list = Vec::new();
        while let Some(order) = seq.next_element()? {
            list.push(order);
        }
        Ok(Order::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Order, A::Error> {
        let mut keys: Vec<(String, Order)> = Vec::new();
        while let Some((key, order)) = map.next_entry()? {
            // Of a key that JSON has twice the last value counts, and once.
            keys.retain(|(known, _)| *known != key);
            keys.push((key, order));
        }
        Ok(Order::Map(keys))
    }
}

/// A value that is written with the keys in the order of an earlier form of it. What is new in it
/// stands last in its map.
#[derive(Debug, Clone, Copy)]
pub struct Ordered<'a> {
    /// The value.
    pub value: &'a Value,
    /// Its earlier form.
    pub earlier: &'a Value,
    /// The order of that.
    pub order: &'a Order,
}

impl<'a> Ordered<'a> {
    /// A value that is new.
    fn new(value: &'a Value) -> Self {
        Self { value, earlier: &Value::Null, order: &Order::Leaf }
    }

    /// An item of the list. Items that only changed places are told by being equal; of the others,
    /// the one at the same place is the earlier form.
    fn item(&self, index: usize, value: &'a Value, earlier: &'a [Value]) -> Self {
        let same = earlier.get(index) == Some(value);
        let place = if same { Some(index) } else { earlier.iter().position(|item| item == value) };
        let Order::List(orders) = self.order else { return Self::new(value) };
        let place = place.unwrap_or(index);
        match (earlier.get(place), orders.get(place)) {
            (Some(earlier), Some(order)) => Self { value, earlier, order },
            _ => Self::new(value),
        }
    }
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Array(list) => {
                let earlier = self.earlier.as_array().map(Vec::as_slice).unwrap_or_default();
                let mut seq = serializer.serialize_seq(Some(list.len()))?;
                for (index, value) in list.iter().enumerate() {
                    seq.serialize_element(&self.item(index, value, earlier))?;
                }
                seq.end()
            }
            Value::Object(map) => {
                let keys = match self.order {
                    Order::Map(keys) => keys.as_slice(),
                    _ => &[],
                };
                let mut out = serializer.serialize_map(Some(map.len()))?;
                for (key, order) in keys {
                    if let (Some(value), Some(earlier)) = (map.get(key), self.earlier.get(key)) {
                        out.serialize_entry(key, &Ordered { value, earlier, order })?;
                    }
                }
                for (key, value) in map {
                    if !keys.iter().any(|(known, _)| known == key) {
                        out.serialize_entry(key, &Ordered::new(value))?;
                    }
                }
                out.end()
            }
            leaf => leaf.serialize(serializer),
        }
    }
}

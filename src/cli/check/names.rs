//! The names of the mesh, with what they resolve to and who answers.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;

use serde_json::json;

use crate::model::{MeshNames, Projection, ServiceKey};

/// Who answers a pod's queries for mesh names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The node's resolver, from the snapshot file.
    Resolver,
    /// The pod's own DNS listener.
    DnsFilter,
}

impl By {
    fn as_str(self) -> &'static str {
        match self {
            Self::Resolver => "mesh-dns",
            Self::DnsFilter => "dns_filter",
        }
    }
}

/// One name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    addresses: Vec<IpAddr>,
    service: ServiceKey,
}

/// All names that resolve, in order.
pub(super) fn all(projection: &Projection, names: &MeshNames) -> BTreeMap<String, Named> {
    let records = projection.records();
    let of = |key: &ServiceKey| {
        let v4 = records.v4.get(key).map(|ip| IpAddr::V4(*ip));
        let v6 = records.v6.get(key).map(|ip| IpAddr::V6(*ip));
        Named { addresses: v4.into_iter().chain(v6).collect(), service: key.clone() }
    };
    let keys = records.v4.keys().chain(records.v6.keys());
    let whole = keys.map(|key| (names.qualified(key), of(key)));
    let short = records.short.iter().map(|(name, key)| (names.short(name), of(key)));
    whole.chain(short).filter(|(_, named)| !named.addresses.is_empty()).collect()
}

/// A line for each.
pub(super) fn write(
    all: &BTreeMap<String, Named>,
    by: By,
    json: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    for (name, Named { addresses, service }) in all {
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        if json {
            let object = json!({
                "name": name,
                "addresses": addresses,
                "service": service.to_string(),
                "answeredBy": by.as_str(),
            });
            writeln!(out, "{object}")?;
        } else {
            let (addresses, by) = (addresses.join(", "), by.as_str());
            writeln!(out, "name {name}: {addresses} (Service {service}, answered by {by})")?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn names_are_told_as_text_and_as_json() {
        let named = Named {
            addresses: vec!["10.96.0.7".parse().unwrap(), "fd00::7".parse().unwrap()],
            service: ServiceKey::new("shop", "cart"),
        };
        let all = BTreeMap::from([("cart.aether.internal".to_owned(), named)]);
        let said = |by, json| {
            let mut out = Vec::new();
            write(&all, by, json, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            said(By::Resolver, false),
            "name cart.aether.internal: 10.96.0.7, fd00::7 (Service shop/cart, answered by mesh-dns)\n"
        );
        let json: serde_json::Value = serde_json::from_str(&said(By::DnsFilter, true)).unwrap();
        assert_eq!(json["answeredBy"], "dns_filter");
        assert_eq!(json["addresses"][1], "fd00::7");
    }
}

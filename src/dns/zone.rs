//! The mesh domain: which names lie inside it, and what is said of the others.

use hickory_proto::rr::rdata::SOA;
use hickory_proto::rr::{Name, RData, Record};

use crate::model::MeshNames;

/// How long an answer about a mesh name may be kept, in seconds: that of a name that exists, and
/// that of one that does not (TTL and minimum of the SOA record).
pub const TTL: u32 = 5;

/// Where a name belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The mesh domain or a name below it: the labels before the domain, in lower case.
    Mesh(Vec<String>),
    /// `<a>.<b>.svc`, and the name that is asked in its stead, `<a>.<b>.svc.<cluster domain>`.
    Service(Name),
    /// Somewhere else.
    Elsewhere,
}

/// Both domains as DNS names.
#[derive(Debug, Clone)]
pub struct Zone {
    domain: Name,
    cluster: Name,
    contact: Name,
}

/// A domain that does not fit into a DNS name; those of [`MeshNames`] always do.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no DNS name: {1}")]
pub struct NotDns(String, hickory_proto::ProtoError);

impl Zone {
    /// The zone of these names.
    ///
    /// # Errors
    /// Where a domain is no DNS name.
    pub fn new(names: &MeshNames) -> Result<Self, NotDns> {
        let read = |text: &str| {
            let name = Name::from_ascii(text).map_err(|error| NotDns(text.to_owned(), error));
            name.map(absolute)
        };
        let domain = read(names.domain())?;
        let contact = read(&format!("hostmaster.{}", names.domain()))?;
        Ok(Self { domain, cluster: read(names.cluster_domain())?, contact })
    }

    /// The mesh domain.
    pub fn domain(&self) -> &Name {
        &self.domain
    }

    /// Where a name belongs. Case does not matter.
    pub fn place(&self, name: &Name) -> Place {
        let labels = name.iter();
        let inside = labels.len().checked_sub(self.domain.iter().len());
        let same = |(a, b): (&[u8], &[u8])| a.eq_ignore_ascii_case(b);
        if let Some(inside) = inside
            && labels.rev().zip(self.domain.iter().rev()).all(same)
        {
            // A label that is no text is nobody's name; what stands for it matches no label.
            let lower = |label: &[u8]| String::from_utf8_lossy(label).to_ascii_lowercase();
            return Place::Mesh(name.iter().take(inside).map(lower).collect());
        }
        let mut labels = name.iter();
        let third = labels.nth(2);
        if third.is_some_and(|label| label.eq_ignore_ascii_case(b"svc")) && labels.next().is_none()
        {
            // Where the two together are too long, there is no such Service.
            if let Ok(whole) = name.clone().append_domain(&self.cluster) {
                return Place::Service(whole);
            }
        }
        Place::Elsewhere
    }

    /// The SOA record that goes with every negative answer. Its serial is the generation.
    pub fn soa(&self, generation: u64) -> Record {
        // What does not fit goes round, as serials do (RFC 1982).
        let serial = u32::try_from(generation & u64::from(u32::MAX)).unwrap_or_default();
        let minute = 60;
        let soa = SOA::new(
            self.domain.clone(),
            self.contact.clone(),
            serial,
            minute,
            minute,
            60 * minute,
            TTL,
        );
        Record::from_rdata(self.domain.clone(), TTL, RData::SOA(soa))
    }
}

fn absolute(mut name: Name) -> Name {
    name.set_fqdn(true);
    name
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    fn place(name: &str) -> Place {
        let zone = Zone::new(&MeshNames::default()).unwrap();
        zone.place(&Name::from_ascii(name).unwrap())
    }

    #[test]
    fn a_name_belongs_by_its_last_labels_in_any_case() {
        let mesh = |labels: &[&str]| Place::Mesh(labels.iter().map(|l| (*l).to_owned()).collect());
        assert_eq!(place("aether.internal."), mesh(&[]));
        assert_eq!(place("Cart.Shop.AETHER.internal."), mesh(&["cart", "shop"]));
        assert_eq!(place("a.b.c.d.aether.internal."), mesh(&["a", "b", "c", "d"]));
        for other in
            [".", "internal.", "xaether.internal.", "aether.internal.com.", "aether.", "a.svc."]
        {
            assert_eq!(place(other), Place::Elsewhere, "{other}");
        }
    }

    #[test]
    fn three_labels_that_end_in_svc_are_asked_in_the_cluster_domain() {
        let whole = Name::from_ascii("Web.shop.SVC.cluster.local.").unwrap();
        assert_eq!(place("Web.shop.SVC."), Place::Service(whole));
        for other in
            ["svc.", "shop.svc.", "a.web.shop.svc.", "web.shop.svc.cluster.local.", "a.svc.b."]
        {
            assert_eq!(place(other), Place::Elsewhere, "{other}");
        }
    }

    #[test]
    fn the_soa_bears_the_generation_and_the_times_of_the_contract() {
        let zone = Zone::new(&MeshNames::default()).unwrap();
        let record = zone.soa(7);
        assert_eq!(record.ttl, 5);
        let RData::SOA(soa) = record.data else { panic!("no SOA") };
        assert_eq!((soa.serial, soa.minimum), (7, 5));
        let RData::SOA(soa) = zone.soa(u64::from(u32::MAX) + 3).data else { panic!("no SOA") };
        assert_eq!(soa.serial, 2);
    }
}

//! What a query is answered, or where it is asked instead: a function of the query and the table.

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use super::query::{Proto, Query};
use super::response;
use super::table::{Addresses, Found, Table};
use super::zone::{Place, TTL, Zone};

/// What is done about a query.
#[derive(Debug, Clone)]
pub enum Decision {
    /// It is answered from what is known here.
    Answer(Outcome, Message),
    /// It is asked upstream.
    Forward(Forward),
}

/// A query for upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// The name that is asked there, in lower case.
    pub name: Name,
    /// Whether that is another name than the client's; the answer then starts at the client's.
    pub renamed: bool,
}

/// What came of a query, for the metrics. A bounded set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A mesh name with addresses of the type asked for.
    Mesh,
    /// A mesh name without.
    MeshNoData,
    /// No mesh name.
    MeshNxDomain,
    /// A mesh name, and no table yet.
    MeshServFail,
    /// Asked upstream.
    Forwarded,
    /// From the cache.
    Cached,
    /// From the cache, past its time, since upstream did not answer.
    Stale,
    /// Upstream failed.
    Failed,
    /// More than can wait at once.
    Overload,
    /// More than this client may ask.
    Limited,
    /// Not answered to anyone.
    Refused,
    /// Not answered by datagram; the client is sent to TCP.
    ToTcp,
    /// About the resolver itself.
    Itself,
    /// No proper query.
    Malformed,
    /// Dropped without an answer.
    Dropped,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Mesh,
        Self::MeshNoData,
        Self::MeshNxDomain,
        Self::MeshServFail,
        Self::Forwarded,
        Self::Cached,
        Self::Stale,
        Self::Failed,
        Self::Overload,
        Self::Limited,
        Self::Refused,
        Self::ToTcp,
        Self::Itself,
        Self::Malformed,
        Self::Dropped,
    ];

    /// Its name on metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mesh => "mesh",
            Self::MeshNoData => "mesh_nodata",
            Self::MeshNxDomain => "mesh_nxdomain",
            Self::MeshServFail => "mesh_servfail",
            Self::Forwarded => "forwarded",
            Self::Cached => "cached",
            Self::Stale => "stale",
            Self::Failed => "failed",
            Self::Overload => "overload",
            Self::Limited => "limited",
            Self::Refused => "refused",
            Self::ToTcp => "to_tcp",
            Self::Itself => "itself",
            Self::Malformed => "malformed",
            Self::Dropped => "dropped",
        }
    }
}

/// Decides about a query. Without a table, mesh names fail and all others are forwarded.
pub fn decide(query: &Query, proto: Proto, zone: &Zone, table: Option<&Table>) -> Decision {
    let question = &query.question;
    match question.query_class {
        DNSClass::IN => {}
        DNSClass::CH => return of_itself(query),
        _ => return refuse(query),
    }
    // Transfers, and types that are no data but part of a message.
    if matches!(
        question.query_type,
        RecordType::AXFR | RecordType::IXFR | RecordType::OPT | RecordType::TSIG | RecordType::ZERO
    ) {
        return refuse(query);
    }
    let forward = |name: &Name, renamed| {
        if question.query_type == RecordType::ANY && proto == Proto::Udp {
            // All records of a name, to an address that may be forged: only over TCP.
            let mut message = response::to(query);
            message.metadata.truncation = true;
            return Decision::Answer(Outcome::ToTcp, message);
        }
        Decision::Forward(Forward { name: name.to_lowercase(), renamed })
    };
    match zone.place(&question.name) {
        Place::Mesh(labels) => of_mesh(query, zone, table, &labels),
        Place::Service(whole) => forward(&whole, true),
        Place::Elsewhere => forward(&question.name, false),
    }
}

/// The answer to a query for a mesh name.
fn of_mesh(query: &Query, zone: &Zone, table: Option<&Table>, labels: &[String]) -> Decision {
    let mut message = response::to(query);
    let Some(table) = table else {
        message.metadata.response_code = ResponseCode::ServFail;
        return Decision::Answer(Outcome::MeshServFail, message);
    };
    message.metadata.authoritative = true;
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let name = &query.question.name;
    match table.find(&labels) {
        Found::Name(addresses) => {
            message.answers = addresses_of(name, query.question.query_type, addresses);
        }
        Found::SelfCheck => message.answers = self_check(name, query.question.query_type, table),
        Found::Empty => {}
        Found::Nothing => message.metadata.response_code = ResponseCode::NXDomain,
    }
    let outcome = match (message.metadata.response_code, message.answers.is_empty()) {
        (ResponseCode::NXDomain, _) => Outcome::MeshNxDomain,
        (_, true) => Outcome::MeshNoData,
        (_, false) => Outcome::Mesh,
    };
    if message.answers.is_empty() {
        message.authorities.push(zone.soa(table.generation));
    }
    Decision::Answer(outcome, message)
}

/// The records of this type; of ANY all, which are two at most.
fn addresses_of(name: &Name, kind: RecordType, addresses: Addresses) -> Vec<Record> {
    let wants = |this| kind == this || kind == RecordType::ANY;
    let v4 = addresses.v4.filter(|_| wants(RecordType::A)).map(|ip| RData::A(A(ip)));
    let v6 = addresses.v6.filter(|_| wants(RecordType::AAAA)).map(|ip| RData::AAAA(AAAA(ip)));
    let record = |data| Record::from_rdata(name.clone(), TTL, data);
    v4.into_iter().chain(v6).map(record).collect()
}

/// What proves that a query came here and that there is a table: an address that cannot be
/// mistaken for a service, and the table's own words. Never kept.
fn self_check(name: &Name, kind: RecordType, table: &Table) -> Vec<Record> {
    let data = match kind {
        RecordType::A => RData::A(A::new(127, 0, 0, 1)),
        RecordType::TXT => RData::TXT(TXT::new(vec![
            format!("generation={}", table.generation),
            format!("writtenAt={}", table.written_at),
            format!("names={}", table.len()),
        ])),
        _ => return Vec::new(),
    };
    vec![Record::from_rdata(name.clone(), 0, data)]
}

/// Class CHAOS: what this server is. Nothing is said of the machine that it runs on.
fn of_itself(query: &Query) -> Decision {
    let name = query.question.name.to_ascii().to_ascii_lowercase();
    let known = matches!(name.trim_end_matches('.'), "version.bind" | "version.server");
    if !known || !matches!(query.question.query_type, RecordType::TXT | RecordType::ANY) {
        return refuse(query);
    }
    let text = TXT::new(vec![concat!("aether mesh-dns ", env!("CARGO_PKG_VERSION")).to_owned()]);
    let mut record = Record::from_rdata(query.question.name.clone(), 0, RData::TXT(text));
    record.dns_class = DNSClass::CH;
    let mut message = response::to(query);
    message.metadata.authoritative = true;
    message.answers.push(record);
    Decision::Answer(Outcome::Itself, message)
}

fn refuse(query: &Query) -> Decision {
    let mut message = response::to(query);
    message.metadata.response_code = ResponseCode::Refused;
    Decision::Answer(Outcome::Refused, message)
}

#[cfg(test)]
mod tests;

//! What upstream answered, kept apart from any one client's query.

use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name, RData, Record};

use super::query::Query;
use super::response;

/// The longest that an answer is kept without asking again, in seconds.
const LONGEST: u32 = 30;
/// The longest that the absence of a name or type is kept, in seconds: a Service that was just
/// made should be found soon.
const LONGEST_NEGATIVE: u32 = 5;
/// The TTL of an answer that is past its time, in seconds.
pub const STALE_TTL: u32 = 5;

/// An answer of an upstream.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The response code.
    pub code: ResponseCode,
    /// Whether upstream vouches for it by DNSSEC.
    pub authentic: bool,
    /// Whether records are missing, since even TCP could not bring them.
    pub truncated: bool,
    /// The three sections.
    pub answers: Vec<Record>,
    /// See `answers`.
    pub authorities: Vec<Record>,
    /// See `answers`.
    pub additionals: Vec<Record>,
}

impl Reply {
    /// The lasting part of a response.
    pub fn new(message: Message) -> Self {
        Self {
            code: message.metadata.response_code,
            authentic: message.metadata.authentic_data,
            truncated: message.metadata.truncation,
            answers: message.answers,
            authorities: message.authorities,
            additionals: message.additionals,
        }
    }

    /// A reply that says nothing but this.
    pub fn of_code(code: ResponseCode) -> Self {
        Self {
            code,
            authentic: false,
            truncated: false,
            answers: Vec::new(),
            authorities: Vec::new(),
            additionals: Vec::new(),
        }
    }

    /// Whether this is an answer, of which another upstream would have no better one.
    pub fn is_answer(&self) -> bool {
        matches!(self.code, ResponseCode::NoError | ResponseCode::NXDomain)
    }

    /// How long it may be kept: the least TTL of the answers; of an absence what its SOA record
    /// says (RFC 2308), and nothing where there is none. `None`: not at all.
    pub fn fresh_for(&self) -> Option<Duration> {
        if self.truncated || !self.is_answer() {
            return None;
        }
        let negative = self.answers.is_empty() || self.code == ResponseCode::NXDomain;
        let seconds = if negative {
            let soa = self.authorities.iter().find_map(|record| match &record.data {
                RData::SOA(soa) => Some(record.ttl.min(soa.minimum)),
                _ => None,
            });
            soa?.min(LONGEST_NEGATIVE)
        } else {
            self.answers.iter().map(|record| record.ttl).min()?.min(LONGEST)
        };
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// About how much memory it takes, in bytes.
    pub fn weight(&self) -> usize {
        let records = self.answers.iter().chain(&self.authorities).chain(&self.additionals);
        // A record's fixed part, its names and its data; long data counts twice at the least.
        let of =
            |record: &Record| size_of::<Record>() + record.name.len() + 2 * data_size(&record.data);
        size_of::<Self>() + records.map(of).sum::<usize>()
    }

    /// The response to a client's query. Records are older by `age` than they were when they
    /// came, or past their time. Those of the name `asked` take the client's name where the
    /// query was renamed: clients ignore an answer that starts elsewhere.
    pub fn response(&self, query: &Query, renamed: Option<&Name>, age: Age) -> Message {
        let mut message = response::to(query);
        message.metadata.response_code = self.code;
        if u16::from(self.code) > 0xF && query.edns.is_none() {
            // Such a code needs EDNS to be told.
            message.metadata.response_code = ResponseCode::ServFail;
        }
        message.metadata.truncation = self.truncated;
        let dnssec_ok = query.edns.is_some_and(|asker| asker.dnssec_ok);
        message.metadata.authentic_data =
            self.authentic && (dnssec_ok || query.header.authentic_data);
        let aged = |record: &Record| {
            let mut record = record.clone();
            record.ttl = match age {
                Age::Seconds(seconds) => record.ttl.saturating_sub(seconds),
                Age::Stale => record.ttl.min(STALE_TTL),
            };
            record
        };
        message.answers = self.answers.iter().map(aged).collect();
        message.authorities = self.authorities.iter().map(aged).collect();
        message.additionals = self.additionals.iter().map(aged).collect();
        // In the client's own spelling, as it would be without us in between.
        let asked = renamed.unwrap_or(&query.question.name);
        for record in message.answers.iter_mut().filter(|record| record.name == *asked) {
            record.name = query.question.name.clone();
        }
        message
    }
}

/// How old a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// So many seconds.
    Seconds(u32),
    /// Past its time.
    Stale,
}

/// The size of a record's data, roughly.
fn data_size(data: &RData) -> usize {
    match data {
        RData::TXT(txt) => txt.txt_data.iter().map(|text| text.len() + 16).sum(),
        RData::Unknown { rdata, .. } | RData::NULL(rdata) => rdata.anything.len(),
        RData::A(_) | RData::AAAA(_) => 0,
        // Names and small structures.
        _ => 256,
    }
}

#[cfg(test)]
mod tests;

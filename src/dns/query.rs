//! Packets in: a query, or what is said to whoever sent something else.

use hickory_proto::op::{
    Header, Message, MessageType, Metadata, OpCode, Query as Question, ResponseCode,
};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};

/// How a query came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proto {
    /// In a datagram; its sender's address may be forged.
    Udp,
    /// On a connection.
    Tcp,
}

impl Proto {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Udp, Self::Tcp];

    /// Its name on metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

/// What the sender said of itself by EDNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// The largest datagram that it takes, in bytes; at least 512.
    pub payload: u16,
    /// Whether it wants DNSSEC records.
    pub dnssec_ok: bool,
}

/// A query with one question.
#[derive(Debug, Clone)]
pub struct Query {
    /// Its header.
    pub header: Metadata,
    /// The question, in the spelling of the sender.
    pub question: Question,
    /// What came by EDNS, where it was spoken.
    pub edns: Option<Asker>,
}

/// Something that is answered with an error.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The header of what was refused.
    pub header: Metadata,
    /// Its question, if it could be read.
    pub question: Option<Question>,
    /// What came by EDNS.
    pub edns: Option<Asker>,
    /// The error.
    pub code: ResponseCode,
}

/// What a packet is.
#[derive(Debug, Clone)]
pub enum Packet {
    /// A query.
    Query(Query),
    /// No query that is answered; the sender is told.
    Refused(Refusal),
    /// Nothing that may be answered: a response (two servers would answer each other for ever),
    /// or less than a header.
    Silent,
}

/// Reads a packet. The header comes first and alone: its counts are only claims, and nothing is
/// allocated for them.
pub fn read(packet: &[u8]) -> Packet {
    let mut decoder = BinDecoder::new(packet);
    let Ok(Header { metadata: header, counts }) = Header::read(&mut decoder) else {
        return Packet::Silent;
    };
    if header.message_type == MessageType::Response {
        return Packet::Silent;
    }
    let refused = |question, edns, code| Packet::Refused(Refusal { header, question, edns, code });
    if header.op_code != OpCode::Query {
        return refused(None, None, ResponseCode::NotImp);
    }
    if counts.queries != 1 {
        return refused(None, None, ResponseCode::FormErr);
    }
    let Ok(question) = Question::read(&mut decoder) else {
        return refused(None, None, ResponseCode::FormErr);
    };
    let mut section = |count: u16, additional| {
        Message::read_records(&mut decoder, count.into(), additional, header.op_code)
    };
    let edns = section(counts.answers, false)
        .and_then(|_| section(counts.authorities, false))
        .and_then(|_| section(counts.additionals, true));
    let Ok((_, edns, _)) = edns else {
        return refused(Some(question), None, ResponseCode::FormErr);
    };
    let version = edns.as_ref().map_or(0, hickory_proto::op::Edns::version);
    let edns = edns.map(|edns| Asker {
        payload: edns.max_payload().max(512),
        dnssec_ok: edns.flags().dnssec_ok,
    });
    if version > 0 {
        return refused(Some(question), edns, ResponseCode::BADVERS);
    }
    Packet::Query(Query { header, question, edns })
}

#[cfg(test)]
mod tests;

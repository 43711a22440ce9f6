//! Packets out: a response in at most so many bytes.

use hickory_proto::ProtoError;
use hickory_proto::op::{Edns, Header, Message, Metadata, Query as Question, emit_message_parts};
use hickory_proto::serialize::binary::BinEncoder;

use super::query::{Asker, Proto, Query, Refusal};

/// The largest datagram that we send and take, in bytes: what passes every network unfragmented
/// (DNS Flag Day 2020), however much the client would take.
pub const LARGEST_DATAGRAM: u16 = 1232;

/// What a client takes that says nothing of it, in bytes (RFC 1035).
const SMALLEST_LIMIT: u16 = 512;

/// The OPT record in bytes, without options.
const OPT_SIZE: u16 = 11;

/// The most that a client takes in one response, in bytes.
pub fn limit(proto: Proto, edns: Option<Asker>) -> u16 {
    match (proto, edns) {
        (Proto::Tcp, _) => u16::MAX,
        (Proto::Udp, Some(asker)) => asker.payload.clamp(SMALLEST_LIMIT, LARGEST_DATAGRAM),
        (Proto::Udp, None) => SMALLEST_LIMIT,
    }
}

/// A response to a query, to be filled: its question as the client spelled it, and EDNS where the
/// client spoke it.
pub fn to(query: &Query) -> Message {
    start(&query.header, Some(query.question.clone()), query.edns)
}

/// The response to what is refused.
pub fn refuse(refusal: &Refusal) -> Message {
    let mut message = start(&refusal.header, refusal.question.clone(), refusal.edns);
    message.metadata.response_code = refusal.code;
    message
}

fn start(header: &Metadata, question: Option<Question>, edns: Option<Asker>) -> Message {
    let mut message = Message::response(header.id, header.op_code);
    message.metadata = Metadata::response_from_request(header);
    message.metadata.recursion_available = true;
    message.queries.extend(question);
    message.edns = edns.map(|asker| {
        let mut edns = Edns::new();
        edns.set_max_payload(LARGEST_DATAGRAM).set_dnssec_ok(asker.dnssec_ok);
        edns
    });
    message
}

/// The bytes of a response, at most `limit` of them. What does not fit is cut: additional records
/// in silence, all others with the bit that sends the client to TCP. As many answers as fit stay,
/// for the sake of clients that never ask again.
///
/// # Errors
/// Where a record cannot be encoded at all.
pub fn encode(message: &Message, limit: u16) -> Result<Vec<u8>, ProtoError> {
    let (bytes, header) = write(message, message.edns.as_ref(), limit)?;
    if header.metadata.truncation == message.metadata.truncation {
        return Ok(bytes);
    }
    // Room for the OPT record, which comes last and belongs into every response.
    let room = if message.edns.is_some() { limit.saturating_sub(OPT_SIZE) } else { limit };
    let (_, fits) = write(message, None, room)?;
    let mut cut = message.clone();
    cut.additionals.clear();
    let answers = usize::from(fits.counts.answers);
    if answers < cut.answers.len() || usize::from(fits.counts.authorities) < cut.authorities.len() {
        cut.answers.truncate(answers);
        cut.authorities.clear();
        cut.metadata.truncation = true;
    }
    Ok(write(&cut, cut.edns.as_ref(), limit)?.0)
}

/// All that fits, and the header that says how much that was.
fn write(
    message: &Message,
    edns: Option<&Edns>,
    limit: u16,
) -> Result<(Vec<u8>, Header), ProtoError> {
    let mut bytes = Vec::with_capacity(512);
    let mut encoder = BinEncoder::new(&mut bytes);
    encoder.set_max_size(limit);
    let header = emit_message_parts(
        &message.metadata,
        &mut message.queries.iter(),
        &mut message.answers.iter(),
        &mut message.authorities.iter(),
        &mut message.additionals.iter(),
        edns,
        None,
        &mut encoder,
    )?;
    Ok((bytes, header))
}

#[cfg(test)]
mod tests;

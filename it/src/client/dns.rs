//! A DNS client: one datagram there, one back, never a second try, so that a lost answer shows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// An answer.
#[derive(Debug, Clone)]
pub struct Records {
    /// The response code's text, such as `No Error` or `Non-Existent Domain`.
    pub code: String,
    /// The addresses, sorted.
    pub addresses: Vec<IpAddr>,
    /// The TTLs of all answers, in seconds.
    pub ttls: Vec<u32>,
    /// How long it took.
    pub took: Duration,
}

/// Asks for the addresses of one family of a name, from a fresh port; fails after `limit`.
pub async fn ask(server: SocketAddr, name: &str, v6: bool, limit: Duration) -> Result<Records> {
    let start = Instant::now();
    let kind = if v6 { RecordType::AAAA } else { RecordType::A };
    let mut query = Message::query();
    query.metadata.recursion_desired = true;
    query.add_query(Query::query(Name::from_ascii(name)?, kind));
    let any: IpAddr =
        if server.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(&query.to_vec()?).await?;
    let mut packet = vec![0; 65_535];
    let length = timeout(limit, socket.recv(&mut packet)).await;
    let length = length.with_context(|| format!("{server} does not answer {name}"))??;
    let answer = Message::from_vec(packet.get(..length).unwrap_or_default())?;
    anyhow::ensure!(answer.metadata.id == query.metadata.id, "an answer to another query");
    let mut addresses: Vec<IpAddr> = answer
        .answers
        .iter()
        .filter_map(|record| match &record.data {
            RData::A(a) => Some(a.0.into()),
            RData::AAAA(aaaa) => Some(aaaa.0.into()),
            _ => None,
        })
        .collect();
    addresses.sort_unstable();
    Ok(Records {
        code: answer.metadata.response_code.to_string(),
        addresses,
        ttls: answer.answers.iter().map(|record| record.ttl).collect(),
        took: start.elapsed(),
    })
}

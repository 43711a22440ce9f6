//! A nameserver: what a dns_filter forwards to, or what it must not.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio_util::task::AbortOnDropHandle;

use crate::net::Netns;

/// The names that a nameserver knows, in lower case without the last dot. Any other is NXDOMAIN.
pub type Zone = BTreeMap<String, Vec<IpAddr>>;

/// A nameserver over UDP, TTL 60 s.
#[derive(Debug)]
pub struct DnsBackend {
    address: SocketAddr,
    queries: Arc<AtomicU64>,
    _task: AbortOnDropHandle<()>,
}

impl DnsBackend {
    /// Starts it.
    pub async fn start(netns: &Netns, address: SocketAddr, zone: Zone) -> Result<Self> {
        let socket = netns.run(async move { Ok(UdpSocket::bind(address).await?) }).await?;
        let address = socket.local_addr()?;
        let queries = Arc::new(AtomicU64::new(0));
        let counted = queries.clone();
        let task = netns.spawn(async move {
            let mut packet = vec![0; 4096];
            while let Ok((length, peer)) = socket.recv_from(&mut packet).await {
                counted.fetch_add(1, Ordering::Relaxed);
                let answer = answer(packet.get(..length).unwrap_or_default(), &zone);
                if let Ok(bytes) = answer {
                    // A client that is gone is its own business.
                    let _ = socket.send_to(&bytes, peer).await;
                }
            }
        })?;
        Ok(Self { address, queries, _task: task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Queries so far.
    pub fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }
}

fn answer(packet: &[u8], zone: &Zone) -> Result<Vec<u8>> {
    let mut message = Message::from_vec(packet)?.into_response();
    message.edns = None;
    let Some(query) = message.queries.first().cloned() else {
        message.metadata.response_code = ResponseCode::FormErr;
        return Ok(message.to_vec()?);
    };
    let name = query.name().to_ascii().trim_end_matches('.').to_lowercase();
    match zone.get(&name) {
        None => message.metadata.response_code = ResponseCode::NXDomain,
        Some(addresses) => {
            let data = addresses.iter().filter_map(|address| match (address, query.query_type()) {
                (IpAddr::V4(v4), RecordType::A) => Some(RData::A(A(*v4))),
                (IpAddr::V6(v6), RecordType::AAAA) => Some(RData::AAAA(AAAA(*v6))),
                _ => None,
            });
            let records = data.map(|data| Record::from_rdata(query.name().clone(), 60, data));
            message.insert_answers(records.collect());
        }
    }
    Ok(message.to_vec()?)
}

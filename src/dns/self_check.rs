//! The resolver asks itself, by the way that its clients take: proof that the whole path stands,
//! from the socket over the table to the answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Message, Query as Question, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use tokio::net::UdpSocket;
use tokio::time::{interval, timeout};
use tracing::{info, warn};

use super::metrics::Metrics;
use super::table::SELF_CHECK;

/// How often.
const EVERY: Duration = Duration::from_secs(10);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks each address for the name `_selfcheck` of the domain, again and again; all of them have
/// to answer.
pub async fn run(addresses: Vec<SocketAddr>, domain: Name, metrics: Arc<Metrics>) {
    let Ok(name) = domain.prepend_label(SELF_CHECK) else { return };
    let mut turns = interval(EVERY);
    let mut well = true;
    loop {
        turns.tick().await;
        let mut failed = None;
        for address in &addresses {
            match timeout(PATIENCE, ask(reachable(*address), &name)).await {
                Ok(Ok(ResponseCode::NoError)) => {}
                Ok(Ok(code)) => failed = Some(format!("{address} answers {code}")),
                Ok(Err(error)) => failed = Some(format!("{address} cannot be asked: {error}")),
                Err(_) => failed = Some(format!("{address} does not answer")),
            }
        }
        metrics.self_checked(failed.is_none());
        match &failed {
            Some(why) if well => warn!(%name, "the resolver does not answer itself: {why}"),
            None if !well => info!(%name, "the resolver answers itself again"),
            _ => {}
        }
        well = failed.is_none();
    }
}

async fn ask(server: SocketAddr, name: &Name) -> std::io::Result<ResponseCode> {
    let mut query = Message::query();
    query.add_query(Question::query(name.clone(), RecordType::TXT));
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(&query.to_vec().map_err(std::io::Error::other)?).await?;
    let mut packet = vec![0; 1500];
    loop {
        let length = socket.recv(&mut packet).await?;
        if let Ok(answer) = Message::from_vec(packet.get(..length).unwrap_or_default())
            && answer.metadata.id == query.metadata.id
        {
            return Ok(answer.metadata.response_code);
        }
    }
}

/// Where a server that listens on all addresses is asked.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

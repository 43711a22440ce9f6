//! What a Service is to an API server: an address behind which one of several replicas answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use it::cluster::Claim;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// Takes connections to replicas, the first that answers.
pub struct Balancer {
    claim: Claim,
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Balancer {
    pub async fn start() -> Result<Self> {
        let claim = Claim::new(9443)?;
        let listener = TcpListener::bind(claim.address()).await?;
        let targets = Arc::new(Mutex::new(Vec::<SocketAddr>::new()));
        let known = targets.clone();
        let serving = tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let targets = known.lock().unwrap().clone();
                tokio::spawn(async move {
                    for target in targets {
                        if let Ok(mut far) = TcpStream::connect(target).await {
                            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                            return;
                        }
                    }
                });
            }
        });
        Ok(Self { claim, targets, _serving: AbortOnDropHandle::new(serving) })
    }

    pub fn address(&self) -> SocketAddr {
        self.claim.address()
    }

    /// From now on, new connections go to the first of these that takes them.
    pub fn to(&self, targets: &[SocketAddr]) {
        *self.targets.lock().unwrap() = targets.to_vec();
    }
}

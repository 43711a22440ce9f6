//! Who is at the other end of a connection, and whether it may speak for a node.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tonic::Status;

use super::{Caller, NodeSpec, Snapshot};

/// What a certificate proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proven {
    /// The name of who has it.
    pub name: Arc<str>,
    /// How long it is valid from now on; its connection goes on no longer.
    pub left: Duration,
}

/// TLS that demands certificates.
#[derive(Clone)]
pub struct Tls {
    /// What a new connection begins with. It is asked each time, so that a new certificate counts
    /// at once.
    pub config: Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>,
    /// Reads who is named by a certificate (DER) that TLS believes; an error says what is wrong with
    /// it.
    pub identify: Identify,
}

/// Reads who is named by a certificate.
pub type Identify = Arc<dyn Fn(&[u8]) -> Result<Proven, String> + Send + Sync>;

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// What a peer claims.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The node that it says it is.
    pub node: &'a str,
    /// Who it proved to be.
    pub proven: &'a str,
    /// That node; `None` while it is not known.
    pub known: Option<&'a NodeSpec>,
}

/// Decides whether a claim is true; the error says what differs. Of a node that is not known yet it
/// says what can be said already, and it is asked again once it is known.
pub type Vouch = Arc<dyn Fn(&Claim<'_>) -> Result<(), String> + Send + Sync>;

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    /// In a word, for the log.
    pub(super) word: Arc<str>,
    /// Who it proved to be, or why it did not; `None` where no proof is asked for.
    pub(super) proven: Option<Result<Arc<str>, Arc<str>>>,
}

impl Peer {
    /// What it is to services that are not about its own node.
    pub(super) fn caller(&self) -> Caller {
        // Who was asked for a proof is no less a stranger where it is not accepted.
        if self.proven.is_some() { Caller::Proven } else { Caller::Open }
    }
}

/// What was found out about a node, as far as its peer was checked against it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Checked {
    Unknown,
    Known(Option<Arc<str>>),
}

/// Lets the stream of a peer pass while its claim holds.
pub(super) struct Gate {
    proven: Option<Result<Arc<str>, Arc<str>>>,
    vouch: Vouch,
    checked: Option<Checked>,
}

impl Gate {
    pub(super) fn new(peer: &Peer, vouch: &Vouch) -> Self {
        Self { proven: peer.proven.clone(), vouch: vouch.clone(), checked: None }
    }

    /// Checks the peer again, where there is news of the node that it speaks for.
    pub(super) fn check(
        &mut self,
        node: Option<&str>,
        snapshot: Option<&Snapshot>,
    ) -> Result<(), Status> {
        let (Some(proven), Some(node)) = (&self.proven, node) else { return Ok(()) };
        let proven = match proven {
            Ok(proven) => proven,
            Err(words) => return Err(Status::unauthenticated(words.as_ref())),
        };
        let known = snapshot.and_then(|snapshot| snapshot.nodes.get(node));
        let now = match known {
            Some(spec) => Checked::Known(spec.identity.clone()),
            None => Checked::Unknown,
        };
        if self.checked.as_ref() == Some(&now) {
            return Ok(());
        }
        let claim = Claim { node, proven, known: known.map(AsRef::as_ref) };
        (self.vouch)(&claim).map_err(Status::permission_denied)?;
        self.checked = Some(now);
        Ok(())
    }
}

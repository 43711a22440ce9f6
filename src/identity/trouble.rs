//! What stands between a workload and its identity, in words that a user can act on.

use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;

use spiffe::WorkloadApiError;
use spiffe::transport::TransportError;

/// Why there is no identity. All of them mean "not yet".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// There is no socket at the path.
    NoSocket,
    /// There is one, and nobody listens on it: an agent that was killed leaves it behind.
    Refused,
    /// This process may not use it.
    Forbidden,
    /// The connection failed in another way.
    Unreachable(String),
    /// The agent gives this workload nothing, in its own words.
    NotIssued(String),
    /// An SVID came whose time is over, so many seconds ago.
    Expired {
        /// Its SPIFFE ID.
        id: String,
        /// For how long.
        since: Duration,
    },
    /// An answer without an SVID.
    Empty,
    /// The agent answers with an error, or with something that is no SVID.
    Answer(String),
    /// It takes the connection, and says nothing for so long.
    Silent(Duration),
}

impl Trouble {
    /// What an error of the Workload API means.
    pub fn of(error: &WorkloadApiError) -> Self {
        match error {
            WorkloadApiError::NoIdentityIssued => Self::NotIssued(error.to_string()),
            WorkloadApiError::PermissionDenied(words) => Self::NotIssued(words.clone()),
            WorkloadApiError::EmptyResponse => Self::Empty,
            WorkloadApiError::MissingRequiredField { field: "X509SVIDResponse.svids" } => {
                Self::Empty
            }
            WorkloadApiError::Transport(TransportError::Connect(connect)) => {
                Self::of_connect(connect)
            }
            other => Self::Answer(other.to_string()),
        }
    }

    /// What it means that no connection came about: the system's own error lies somewhere below.
    fn of_connect(error: &(dyn Error + 'static)) -> Self {
        let mut below = Some(error);
        while let Some(error) = below {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                match io.kind() {
                    io::ErrorKind::NotFound => return Self::NoSocket,
                    io::ErrorKind::ConnectionRefused => return Self::Refused,
                    io::ErrorKind::PermissionDenied => return Self::Forbidden,
                    _ if io.raw_os_error().is_some() => return Self::Unreachable(io.to_string()),
                    _ => {}
                }
                // One that wraps another does not name it as its source.
                if let Some(inner) = io.get_ref() {
                    below = Some(inner);
                    continue;
                }
            }
            below = error.source();
        }
        Self::Unreachable(error.to_string())
    }

    /// What happened at this socket.
    pub fn told(&self, socket: &Path) -> String {
        let socket = socket.display();
        match self {
            Self::NoSocket => format!("there is no socket {socket}"),
            Self::Refused => format!("nobody listens on the socket {socket}"),
            Self::Forbidden => format!("this process may not use the socket {socket}"),
            Self::Unreachable(words) => format!("the socket {socket} cannot be used: {words}"),
            Self::NotIssued(words) => format!("the SPIRE agent gives no identity: {words}"),
            Self::Expired { id, since } => {
                format!("the SPIRE agent gives {id}, which expired {}s ago", since.as_secs())
            }
            Self::Empty => "the SPIRE agent gives an answer without any identity".to_owned(),
            Self::Answer(words) => format!("the SPIRE agent answers: {words}"),
            Self::Silent(after) => {
                format!(
                    "the SPIRE agent takes the connection and says nothing for {}s",
                    after.as_secs()
                )
            }
        }
    }

    /// What to look at.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSocket => {
                "is the SPIRE agent running on this node, and is the volume of the SPIFFE CSI driver (csi.spiffe.io) mounted in this container at the socket's folder?"
            }
            Self::Refused => {
                "an agent that was killed leaves its socket behind: is the SPIRE agent of this node starting, or failing again and again?"
            }
            Self::Forbidden => {
                "the socket has to be open to the user of this container (the agent makes it so), and the node's SELinux or AppArmor profile has to allow it"
            }
            Self::Unreachable(_) => {
                "is it the socket of the SPIRE agent (--spire-workload-socket)?"
            }
            Self::NotIssued(_) => {
                "is there a registration entry for this pod? This is an init container: k8s:ns, k8s:sa, k8s:pod-label, k8s:pod-name, k8s:pod-uid, k8s:pod-owner and k8s:node-name can match it, k8s:container-name and k8s:container-image of the application cannot. An entry made just now takes some seconds to reach the agent"
            }
            Self::Expired { .. } => {
                "can the SPIRE agent reach its server to renew it, and does this node's clock agree with the server's?"
            }
            Self::Empty | Self::Answer(_) => "the log of the SPIRE agent on this node says more",
            Self::Silent(_) => {
                "is the SPIRE agent of this node stuck, or out of CPU? Its log says more"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use spiffe::transport::GrpcStatusCode;

    use super::*;

    fn connect(kind: io::Error) -> WorkloadApiError {
        // As the library does it: the system's error inside of others.
        let inner = io::Error::other(kind);
        WorkloadApiError::Transport(TransportError::connect(inner))
    }

    #[test]
    fn every_error_means_something() {
        let status = |code| WorkloadApiError::Transport(TransportError::status(code, "words"));
        let table = [
            (connect(io::ErrorKind::NotFound.into()), Trouble::NoSocket),
            (connect(io::Error::from_raw_os_error(111)), Trouble::Refused),
            (connect(io::Error::from_raw_os_error(13)), Trouble::Forbidden),
            (WorkloadApiError::NoIdentityIssued, Trouble::NotIssued("no identity issued".into())),
            (
                WorkloadApiError::PermissionDenied("not you".into()),
                Trouble::NotIssued("not you".into()),
            ),
            (WorkloadApiError::EmptyResponse, Trouble::Empty),
            (
                WorkloadApiError::MissingRequiredField { field: "X509SVIDResponse.svids" },
                Trouble::Empty,
            ),
            (
                status(GrpcStatusCode::Unavailable),
                Trouble::Answer("gRPC status unavailable: words".into()),
            ),
        ];
        for (error, expected) in table {
            assert_eq!(Trouble::of(&error), expected, "{error:?}");
        }
        let odd = Trouble::of(&connect(io::Error::from_raw_os_error(88)));
        assert!(matches!(&odd, Trouble::Unreachable(words) if words.contains("socket")), "{odd:?}");
    }

    #[test]
    fn hints_name_what_can_be_looked_at() {
        let hint = Trouble::NotIssued(String::new()).hint();
        for word in ["registration entry", "k8s:ns", "k8s:sa", "k8s:container-name", "cannot"] {
            assert!(hint.contains(word), "{word}");
        }
        assert!(Trouble::NoSocket.hint().contains("csi.spiffe.io"));
    }
}

//! What can stand between us and the API server, in words that say what to do about it.

use std::error::Error as _;
use std::fmt;

use kube::core::Status;
use kube::runtime::watcher;

use super::kinds::resource;
use crate::index::ObjectKind;
use crate::model::quoted;

/// Why a kind cannot be followed at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// The cause.
    pub(super) cause: Cause,
    /// What the system or the API server says of it.
    pub(super) words: String,
}

/// The causes: a bounded set, fit for a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cause {
    /// A permission is missing.
    Forbidden {
        /// `list` or `watch`.
        verb: &'static str,
        /// Of what.
        kind: ObjectKind,
    },
    /// The API server does not know who we are.
    Unauthorized,
    /// There is no way to it: no route, nothing listens, a certificate that is not trusted, silence.
    Unreachable,
    /// It answers that it cannot do it, with this status.
    Refused(u16),
    /// It answers something that is no Kubernetes API.
    Unreadable,
}

impl Cause {
    /// The cause's name in metrics.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "forbidden",
            Self::Unauthorized => "unauthorized",
            Self::Unreachable => "unreachable",
            Self::Refused(_) => "refused",
            Self::Unreadable => "unreadable",
        }
    }
}

impl Trouble {
    /// What an error of a watch comes to; `None` where it is an ordinary event: the API server no
    /// longer knows where the watch stood, so that everything is listed anew.
    pub(super) fn of_watch(error: &watcher::Error, kind: ObjectKind) -> Option<Self> {
        match error {
            watcher::Error::InitialListFailed(error) => Some(Self::of(error, "list", kind)),
            watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
                if matches!(error, kube::Error::Api(status) if status.code == 410) {
                    return None;
                }
                Some(Self::of(error, "watch", kind))
            }
            watcher::Error::WatchError(status) if status.code == 410 => None,
            watcher::Error::WatchError(status) => Some(Self::of_status(status, "watch", kind)),
            watcher::Error::NoResourceVersion => Some(Self {
                cause: Cause::Unreadable,
                words: "an object without a resourceVersion".to_owned(),
            }),
        }
    }

    /// What an error of a request comes to.
    pub(super) fn of(error: &kube::Error, verb: &'static str, kind: ObjectKind) -> Self {
        let cause = match error {
            kube::Error::Api(status) => return Self::of_status(status, verb, kind),
            kube::Error::Auth(_) => Cause::Unauthorized,
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Cause::Unreadable,
            _ => Cause::Unreachable,
        };
        Self { cause, words: root(error) }
    }

    fn of_status(status: &Status, verb: &'static str, kind: ObjectKind) -> Self {
        let cause = match status.code {
            403 => Cause::Forbidden { verb, kind },
            401 => Cause::Unauthorized,
            code => Cause::Refused(code),
        };
        let words = [&status.message, &status.reason];
        let words = words.into_iter().find(|words| !words.is_empty());
        Self { cause, words: words.cloned().unwrap_or_default() }
    }

    /// The trouble in one sentence, with the way out.
    pub(super) fn told<'a>(&'a self, server: &'a str) -> Told<'a> {
        Told { trouble: self, server }
    }
}

/// A trouble with the API server at an address, to be written.
pub(super) struct Told<'a> {
    trouble: &'a Trouble,
    server: &'a str,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trouble: Trouble { cause, words }, server } = self;
        match *cause {
            Cause::Forbidden { verb, kind } => {
                let (group, resource) = resource(kind);
                write!(
                    f,
                    "the API server at {server} does not let us {verb} {resource} of the API group {group:?} in the whole cluster ({words}); grant the verb {verb} on {resource} of the API group {group:?} to our account by a ClusterRole and a ClusterRoleBinding"
                )
            }
            Cause::Unauthorized => write!(
                f,
                "the API server at {server} does not accept our credentials ({words}); renew the token or client certificate that we are given"
            ),
            Cause::Unreachable => write!(
                f,
                "the API server at {server} cannot be reached: {words}; see that it runs, that the address is right, and that nothing between is closed"
            ),
            Cause::Refused(code) => write!(
                f,
                "the API server at {server} answers with {code} ({}); it is asked again",
                quoted(words)
            ),
            Cause::Unreadable => write!(
                f,
                "what answers at {server} does not speak as a Kubernetes API server does ({words}); see that the address is one's"
            ),
        }
    }
}

/// The innermost cause of an error, which says what happened; those around it say where we were.
fn root(error: &kube::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match error.source() {
        Some(_) => innermost.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    fn api(code: u16, message: &str) -> kube::Error {
        kube::Error::Api(Status::failure(message, "Reason").with_code(code).boxed())
    }

    #[test]
    fn a_missing_permission_is_named_by_verb_group_and_resource() {
        for (kind, verb, group, resource) in [
            (ObjectKind::EndpointSlice, "watch", "\"discovery.k8s.io\"", "endpointslices"),
            (ObjectKind::Pod, "list", "\"\"", "pods"),
        ] {
            let trouble = Trouble::of(&api(403, "no"), verb, kind);
            assert_eq!(trouble.cause, Cause::Forbidden { verb, kind });
            let told = trouble.told("https://10.0.0.1").to_string();
            for word in [verb, group, resource, "https://10.0.0.1", "(no)", "ClusterRole"] {
                assert!(told.contains(word), "{word} in {told}");
            }
        }
    }

    #[test]
    fn errors_have_their_causes() {
        let kind = ObjectKind::Node;
        let refused = std::io::Error::from_raw_os_error(111);
        let json = serde_json::from_str::<u8>("x").unwrap_err();
        let table = [
            (api(401, "Unauthorized"), Cause::Unauthorized),
            (api(503, "starting"), Cause::Refused(503)),
            (kube::Error::Service(Box::new(refused)), Cause::Unreachable),
            (kube::Error::SerdeError(json), Cause::Unreadable),
        ];
        for (error, cause) in table {
            let words = error.to_string();
            assert_eq!(Trouble::of(&error, "watch", kind).cause, cause, "{words}");
        }
    }

    #[test]
    fn what_the_system_says_is_told() {
        let refused = std::io::Error::from_raw_os_error(111);
        let error = watcher::Error::WatchStartFailed(kube::Error::Service(Box::new(refused)));
        let trouble = Trouble::of_watch(&error, ObjectKind::Pod).unwrap();
        let told = trouble.told("https://[::1]:6443").to_string();
        assert!(
            told.contains("https://[::1]:6443 cannot be reached: Connection refused"),
            "{told}"
        );
    }

    #[test]
    fn to_list_anew_is_no_trouble() {
        let gone = || Status::failure("too old", "Expired").with_code(410).boxed();
        for error in [
            watcher::Error::WatchError(gone()),
            watcher::Error::WatchStartFailed(kube::Error::Api(gone())),
            watcher::Error::WatchFailed(kube::Error::Api(gone())),
        ] {
            assert_eq!(Trouble::of_watch(&error, ObjectKind::Pod), None, "{error}");
        }
        let other = Status::failure("etcd", "InternalError").with_code(500).boxed();
        let trouble = Trouble::of_watch(&watcher::Error::WatchError(other), ObjectKind::Pod);
        assert_eq!(trouble.unwrap().cause, Cause::Refused(500));
    }
}

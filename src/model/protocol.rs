//! The protocol of a port.

/// What a port speaks, by the rule of `aether.io/app-protocol` and `appProtocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// HTTP, routed by authority.
    Http(HttpVersion),
    /// Anything else, carried by ClusterIP.
    Tcp,
}

/// The version that an HTTP backend is spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HttpVersion {
    /// HTTP/1.1: `http` and `kubernetes.io/ws`.
    Http1,
    /// HTTP/2: `h2`, `http2`, `grpc` and `kubernetes.io/h2c`.
    Http2,
    /// The one that the client speaks: no protocol was declared.
    AsClient,
}

impl Protocol {
    /// Reads a protocol word, in any case. Every word that is not known to be HTTP is TCP, grpc-web
    /// included; an empty one is HTTP of the client's own version.
    pub fn from_word(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "" => Self::Http(HttpVersion::AsClient),
            "http" | "kubernetes.io/ws" => Self::Http(HttpVersion::Http1),
            "h2" | "http2" | "grpc" | "kubernetes.io/h2c" => Self::Http(HttpVersion::Http2),
            _ => Self::Tcp,
        }
    }

    /// Whether this is HTTP of any version.
    pub fn is_http(self) -> bool {
        matches!(self, Self::Http(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_contract_in_any_case() {
        use HttpVersion::{AsClient, Http1, Http2};
        let table = [
            ("", Protocol::Http(AsClient)),
            ("http", Protocol::Http(Http1)),
            ("HTTP", Protocol::Http(Http1)),
            ("kubernetes.io/ws", Protocol::Http(Http1)),
            ("kubernetes.io/WS", Protocol::Http(Http1)),
            ("h2", Protocol::Http(Http2)),
            ("Http2", Protocol::Http(Http2)),
            ("gRPC", Protocol::Http(Http2)),
            ("kubernetes.io/h2c", Protocol::Http(Http2)),
            ("grpc-web", Protocol::Tcp),
            (" http ", Protocol::Tcp),
            ("https", Protocol::Tcp),
            ("kubernetes.io/wss", Protocol::Tcp),
            ("tcp", Protocol::Tcp),
            ("redis", Protocol::Tcp),
        ];
        for (word, expected) in table {
            assert_eq!(Protocol::from_word(word), expected, "{word:?}");
        }
    }
}

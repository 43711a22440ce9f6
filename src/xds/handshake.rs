//! The beginning of a TLS connection, and what is said of one that fails.

use std::io;

use rustls::{CertificateError, Error, InvalidMessage};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::peer::{Proven, Tls};

/// The first byte of a TLS handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;

/// A connection that did not come about.
#[derive(Debug)]
pub(super) enum Failed {
    /// The peer left before it said anything, as a probe does.
    Gone,
    /// It speaks no TLS.
    PlainText(TcpStream),
    /// The handshake failed, for this reason.
    Handshake(String),
}

/// Shakes hands. Whoever comes out of it has a certificate that is believed; whom it names is another
/// question.
pub(super) async fn handshake(
    tls: &Tls,
    tcp: TcpStream,
) -> Result<(TlsStream<TcpStream>, Result<Proven, String>), Failed> {
    let mut first = [0; 1];
    match tcp.peek(&mut first).await {
        Ok(0) | Err(_) => return Err(Failed::Gone),
        Ok(_) if first != [HANDSHAKE] => return Err(Failed::PlainText(tcp)),
        Ok(_) => {}
    }
    let stream = TlsAcceptor::from((tls.config)()).accept(tcp).await;
    let stream = stream.map_err(|error| Failed::Handshake(words(&error)))?;
    let (_, session) = stream.get_ref();
    let leaf = session.peer_certificates().and_then(<[_]>::first);
    let proven = match leaf {
        Some(leaf) => (tls.identify)(leaf)
            .map_err(|error| format!("the client certificate proves no identity: {error}")),
        None => Err("there is no client certificate".to_owned()),
    };
    Ok((stream, proven))
}

/// What is wrong, and what to do about it.
fn words(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    let hint = match tls {
        Some(Error::NoCertificatesPresented) => {
            "it presented no client certificate: give it one (aether bootstrap --help says how)"
        }
        Some(Error::InvalidCertificate(
            // The signature is bad where an authority was made anew under the name of the old one.
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => "none of the authorities of --xds-client-ca signed its certificate",
        Some(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => "its certificate has expired: renew it",
        Some(Error::InvalidCertificate(_)) => "its certificate is not believed",
        Some(Error::AlertReceived(_)) => {
            "it does not believe our certificate: look at the authority that it trusts, and at the \
             name or SPIFFE ID that it expects"
        }
        Some(Error::NoApplicationProtocol) => "it does not speak HTTP/2 (ALPN h2)",
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => "it speaks no TLS",
        _ => return error.to_string(),
    };
    format!("{hint} ({error})")
}

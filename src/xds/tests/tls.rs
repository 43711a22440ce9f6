//! TLS: who gets in, and what the others are told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryResponse;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::super::{Claim, Denial, Limits, Proven, Server, Tls};
use super::served::Served;
use super::wire::{subscribe, wire, world};
use super::world::{CDS, NODE, World};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    Issuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

type Chain = (Vec<rustls::pki_types::CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate for this URI and for localhost, valid for so many seconds from now.
fn signed(by: &Issuer, uri: &str, seconds: i64) -> Chain {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
    let now = i64::try_from(crate::tls::unix_now()).unwrap();
    let at = |unix: i64| time::OffsetDateTime::from_unix_timestamp(unix).unwrap();
    (params.not_before, params.not_after) = (at(now - 10_000), at(now + seconds));
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    (vec![certificate.der().clone()], key.into())
}

fn roots(of: &Issuer) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(of.der().clone()).unwrap();
    Arc::new(roots)
}

/// A server whose nodes are whom their identity names.
async fn secured(world: &mut World, authority: &Issuer, limits: Limits) -> Served {
    secured_with(world, authority, limits, |server| server).await
}

/// The same with more settings.
async fn secured_with(
    world: &mut World,
    authority: &Issuer,
    limits: Limits,
    more: impl FnOnce(Server) -> Server,
) -> Served {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = rustls::server::WebPkiClientVerifier::builder_with_provider(
        roots(authority),
        provider.clone(),
    );
    let (chain, key) = signed(authority, "spiffe://td/plane", 1000);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = Arc::new(config);
    let tls = Tls {
        config: Arc::new(move || config.clone()),
        identify: Arc::new(|certificate| {
            let identity = crate::tls::identity(certificate).map_err(|error| error.to_string())?;
            let left = Duration::from_secs(identity.until - crate::tls::unix_now());
            Ok(Proven { name: identity.id.to_string().into(), left })
        }),
    };
    let vouch = Arc::new(|claim: &Claim<'_>| {
        assert_eq!(claim.node, NODE);
        let Some(known) = claim.known else { return Ok(()) };
        let expected = known.identity.as_deref().unwrap_or("nobody");
        if claim.proven == expected {
            Ok(())
        } else {
            Err(format!("{} is not {expected}", claim.proven))
        }
    });
    let set = |server: Server| more(server.vouch(vouch).limits(limits));
    Served::start_with(world, false, Some(tls), set).await
}

/// A connection with this certificate.
async fn connect(
    served: &Served,
    authority: &Issuer,
    chain: Option<&Chain>,
) -> Result<Channel, tonic::transport::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(authority));
    let mut config = match chain {
        Some((chain, key)) => config.with_client_auth_cert(chain.clone(), key.clone_key()).unwrap(),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (address, config) = (served.address(), Arc::new(config));
    let connect = tower::service_fn(move |_| {
        let config = config.clone();
        async move {
            let tcp = TcpStream::connect(address).await?;
            let name = ServerName::try_from("localhost").unwrap();
            let tls = TlsConnector::from(config).connect(name, tcp).await?;
            Ok::<_, std::io::Error>(TokioIo::new(tls))
        }
    });
    Endpoint::from_static("http://localhost").connect_with_connector(connect).await
}

/// Asks, and waits for this long for the answer.
async fn ask(
    channel: Channel,
    wait: Duration,
) -> Option<Result<Option<DeltaDiscoveryResponse>, Status>> {
    let (say, requests) = wire();
    say.send(subscribe(CDS, &[])).unwrap();
    let ask = async {
        let mut client = Ads::new(channel);
        client.delta_aggregated_resources(requests).await?.into_inner().message().await
    };
    tokio::time::timeout(wait, ask).await.ok()
}

const SOON: Duration = Duration::from_secs(5);
const CART: &str = "spiffe://td/ns/shop/sa/cart";

fn known(identity: &str) -> World {
    let mut world = world();
    world.identity = Some(identity.into());
    world
}

#[tokio::test]
async fn who_is_the_one_it_says_is_served_and_another_is_told_what_differs() {
    let authority = authority();
    let served = secured(&mut known(CART), &authority, Limits::default()).await;
    let cart = signed(&authority, CART, 1000);
    let channel = connect(&served, &authority, Some(&cart)).await.unwrap();
    assert_eq!(ask(channel, SOON).await.unwrap().unwrap().unwrap().resources.len(), 1);
    for (uri, code, words) in [
        ("spiffe://td/ns/shop/sa/till", Code::PermissionDenied, "sa/till is not spiffe://td"),
        ("https://td/a", Code::Unauthenticated, "is no SPIFFE ID"),
    ] {
        let other = signed(&authority, uri, 1000);
        let channel = connect(&served, &authority, Some(&other)).await.unwrap();
        let refused = ask(channel, SOON).await.unwrap().unwrap_err();
        assert!(refused.code() == code && refused.message().contains(words), "{refused}");
    }
    assert_eq!(served.stats.refused.get(Denial::Identity), 2);
    served.quiet().await;
}

#[tokio::test]
async fn services_beside_hear_who_asks() {
    let authority = authority();
    let answer: crate::xds::Answer = Arc::new(|_, caller| {
        let status = Status::aborted(format!("{caller:?}"));
        Box::pin(std::future::ready(status.into_http()))
    });
    let asks = async |channel: Channel| {
        let mut grpc = tonic::client::Grpc::new(channel);
        grpc.ready().await.unwrap();
        let path = http::uri::PathAndQuery::from_static("/other.Service/Method");
        let codec =
            tonic_prost::ProstCodec::<DeltaDiscoveryResponse, DeltaDiscoveryResponse>::default();
        let asked = tonic::Request::new(DeltaDiscoveryResponse::default());
        grpc.unary(asked, path, codec).await.unwrap_err().message().to_owned()
    };
    let (mut world_of, set) = (known(CART), answer.clone());
    let more = |server: Server| server.beside(set);
    let served = secured_with(&mut world_of, &authority, Limits::default(), more).await;
    // One whose identity is not accepted is no operator.
    for uri in [CART, "spiffe://td/ns/shop/sa/till", "https://td/a"] {
        let chain = signed(&authority, uri, 1000);
        let channel = connect(&served, &authority, Some(&chain)).await.unwrap();
        assert_eq!(asks(channel).await, "Proven");
    }
    for unix in [true, false] {
        let answer = answer.clone();
        let set = |server: Server| server.beside(answer);
        let served = Served::start_with(&mut world(), unix, None, set).await;
        assert_eq!(asks(served.channel().await).await, "Open");
    }
    served.quiet().await;
}

#[tokio::test]
async fn one_that_is_not_known_waits_and_is_checked_when_it_is() {
    let authority = authority();
    let mut world = known(CART);
    world.without_node = true;
    let served = secured(&mut world, &authority, Limits::default()).await;
    let connect = async |uri| {
        let chain = signed(&authority, uri, 1000);
        connect(&served, &authority, Some(&chain)).await.unwrap()
    };
    let (right, wrong) = (connect(CART).await, connect("spiffe://td/ns/shop/sa/till").await);
    let right = tokio::spawn(ask(right, SOON));
    let wrong = tokio::spawn(ask(wrong, SOON));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!right.is_finished() && !wrong.is_finished());
    world.without_node = false;
    world.publish(&served.store);
    assert!(right.await.unwrap().unwrap().unwrap().is_some());
    let refused = wrong.await.unwrap().unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    // A pod that is made anew under its name runs as somebody else: the old one's proxy must go.
    let channel = connect(CART).await;
    let (say, requests) = wire();
    say.send(subscribe(CDS, &[])).unwrap();
    let mut stream = Ads::new(channel).delta_aggregated_resources(requests).await.unwrap();
    assert!(stream.get_mut().message().await.unwrap().is_some());
    world.identity = Some("spiffe://td/ns/shop/sa/till".into());
    world.publish(&served.store);
    let refused = stream.get_mut().message().await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn without_a_certificate_that_is_believed_there_is_no_connection() {
    let (mine, foreign) = (authority(), authority());
    let served = secured(&mut known(CART), &mine, Limits::default()).await;
    let (expired, strange) = (signed(&mine, CART, -5), signed(&foreign, CART, 1000));
    for (chain, words) in [
        (None, "CertificateRequired"),
        (Some(&expired), "CertificateExpired"),
        // Both authorities have the same name.
        (Some(&strange), "DecryptError"),
    ] {
        // With TLS 1.3 a client hears of it when it reads for the first time.
        let said = match connect(&served, &mine, chain).await {
            Err(error) => format!("{error:?}"),
            Ok(channel) => format!("{:?}", ask(channel, SOON).await.unwrap().unwrap_err()),
        };
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(served.stats.refused.get(Denial::Handshake), 3);

    let mut plain = TcpStream::connect(served.address()).await.unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut said = Vec::new();
    plain.read_to_end(&mut said).await.unwrap();
    assert!(String::from_utf8_lossy(&said).contains("this address speaks TLS"), "{said:?}");
    assert_eq!(served.stats.refused.get(Denial::PlainText), 1);
    // A probe that says nothing is nothing to speak of.
    drop(TcpStream::connect(served.address()).await.unwrap());
    served.quiet().await;
    assert_eq!(served.stats.refused.get(Denial::Handshake), 3);
}

#[tokio::test]
async fn a_handshake_comes_to_its_end_or_is_given_up() {
    let authority = authority();
    let limits = Limits { first: Duration::from_millis(300), ..Limits::default() };
    let served = secured(&mut known(CART), &authority, limits).await;
    let begun = Instant::now();
    for hello in [&[][..], &[0x16, 3, 1]] {
        let mut silent = TcpStream::connect(served.address()).await.unwrap();
        silent.write_all(hello).await.unwrap();
        let _ = silent.read_to_end(&mut Vec::new()).await;
        assert!(begun.elapsed() < SOON);
    }
    assert_eq!(served.stats.refused.get(Denial::Handshake), 2);
}

#[tokio::test]
async fn s27_a_connection_ends_with_the_certificate_that_it_presented() {
    let authority = authority();
    let served = secured(&mut known(CART), &authority, Limits::default()).await;
    let cart = signed(&authority, CART, 3);
    let channel = connect(&served, &authority, Some(&cart)).await.unwrap();
    let (say, requests) = wire();
    say.send(subscribe(CDS, &[])).unwrap();
    let mut stream = Ads::new(channel).delta_aggregated_resources(requests).await.unwrap();
    assert!(stream.get_mut().message().await.unwrap().is_some());
    let ended = tokio::time::timeout(SOON, stream.get_mut().message()).await.unwrap();
    assert_eq!(ended.unwrap(), None);
}

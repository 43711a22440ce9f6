//! HTTP options of both sides of the proxy: what keeps an application from noticing it.
//!
//! Each raises a limit or switches off a change that stock Envoy would make; where a value is not
//! set here, Envoy's default changes nothing that passes.

use envoy_types::pb::envoy::config::core::v3::http1_protocol_options::HeaderKeyFormat;
use envoy_types::pb::envoy::config::core::v3::http1_protocol_options::header_key_format::HeaderFormat;
use envoy_types::pb::envoy::config::core::v3::{
    Http1ProtocolOptions, Http2ProtocolOptions, HttpProtocolOptions as CommonOptions,
};
use envoy_types::pb::envoy::extensions::http::header_formatters::preserve_case::v3::PreserveCaseFormatterConfig;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    ExplicitHttpConfig, UpstreamProtocolOptions, UseDownstreamHttpConfig,
    explicit_http_config::ProtocolConfig,
};

use super::proto::{extension, millis, never, number, truth};
use crate::model::HttpVersion;

/// The most headers of a message; Envoy's default is 100.
const MAX_HEADERS: u32 = 10_000;
/// The most kilobytes of headers, which is the most that Envoy can be told; its default is 60.
pub(super) const MAX_HEADERS_KB: u32 = 8192;
/// The most streams of a connection that the protocol can name. Envoy's default would make the
/// 1,025th long-lived stream of a client wait.
const MAX_STREAMS: u32 = 2_147_483_647;
/// How long an idle connection to an HTTP/1.1 backend is kept. Backends close theirs after 2 to
/// 5 s, and a POST that meets such a close is lost.
const HTTP1_IDLE_MS: u32 = 1500;
/// The host of an HTTP/1.0 request that names none. It is nobody's, so the request takes the
/// catch-all.
const NO_HOST: &str = "http-1.0.invalid";

/// The common options of the connection manager.
pub(super) fn downstream_common() -> CommonOptions {
    CommonOptions {
        idle_timeout: never(),
        max_headers_count: number(MAX_HEADERS),
        ..CommonOptions::default()
    }
}

/// HTTP/1 towards the client.
pub(super) fn downstream_http1() -> Http1ProtocolOptions {
    Http1ProtocolOptions {
        accept_http_10: true,
        default_host_for_http_10: NO_HOST.to_owned(),
        allow_custom_methods: true,
        ..http1()
    }
}

/// HTTP/2 towards the client.
pub(super) fn downstream_http2() -> Http2ProtocolOptions {
    Http2ProtocolOptions { max_concurrent_streams: number(MAX_STREAMS), ..http2() }
}

/// The options of a cluster whose backends speak a version, or the client's own.
pub(super) fn upstream_options(version: HttpVersion) -> HttpProtocolOptions {
    let explicit = |config| {
        UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
            protocol_config: Some(config),
        })
    };
    let options = match version {
        HttpVersion::Http1 => explicit(ProtocolConfig::HttpProtocolOptions(http1())),
        HttpVersion::Http2 => explicit(ProtocolConfig::Http2ProtocolOptions(http2())),
        HttpVersion::AsClient => {
            UpstreamProtocolOptions::UseDownstreamProtocolConfig(UseDownstreamHttpConfig {
                http_protocol_options: Some(http1()),
                http2_protocol_options: Some(http2()),
                ..UseDownstreamHttpConfig::default()
            })
        }
    };
    let idle = (version != HttpVersion::Http2).then(|| millis(HTTP1_IDLE_MS)).flatten();
    HttpProtocolOptions {
        common_http_protocol_options: Some(CommonOptions {
            idle_timeout: idle,
            max_headers_count: number(MAX_HEADERS),
            max_response_headers_kb: number(MAX_HEADERS_KB),
            ..CommonOptions::default()
        }),
        upstream_protocol_options: Some(options),
        ..HttpProtocolOptions::default()
    }
}

/// The spelling of header names and of reason phrases is kept, and so are trailers.
fn http1() -> Http1ProtocolOptions {
    let preserve = PreserveCaseFormatterConfig {
        forward_reason_phrase: true,
        ..PreserveCaseFormatterConfig::default()
    };
    let name = "envoy.http.stateful_header_formatters.preserve_case";
    Http1ProtocolOptions {
        allow_absolute_url: truth(true),
        enable_trailers: true,
        header_key_format: Some(HeaderKeyFormat {
            header_format: Some(HeaderFormat::StatefulFormatter(extension(name, preserve))),
        }),
        ..Http1ProtocolOptions::default()
    }
}

fn http2() -> Http2ProtocolOptions {
    Http2ProtocolOptions { allow_connect: true, ..Http2ProtocolOptions::default() }
}

//! The HTTP connection manager.

use bytes::Bytes;
use envoy_types::pb::envoy::config::accesslog::v3::access_log_filter::FilterSpecifier;
use envoy_types::pb::envoy::config::accesslog::v3::{
    AccessLogFilter, ComparisonFilter, StatusCodeFilter, comparison_filter::Op,
};
use envoy_types::pb::envoy::config::core::v3::RuntimeUInt32;
use envoy_types::pb::envoy::extensions::filters::http::router::v3::Router;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::{
    CodecType, ForwardClientCertDetails, PathWithEscapedSlashesAction, RouteSpecifier,
    ServerHeaderTransformation, UpgradeConfig,
};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, LocalReplyConfig, Rds, ResponseMapper,
    http_filter::ConfigType,
};

use super::http_options::{MAX_HEADERS_KB, downstream_common, downstream_http1, downstream_http2};
use super::naming::routes_of;
use super::proto::{ads_awaited, any, encoded, format, never, number, truth};
use super::{chains, kept};

/// The protocols that a connection may change to. There is no wildcard.
const UPGRADES: [&str; 4] = ["websocket", "spdy/3.1", "tcp", "CONNECT"];

/// The body of every answer of 400 and more that comes from the proxy itself. A backend's own
/// answers never pass the mapper.
const LOCAL_REPLY: &str = "aether: answered by the mesh, not by the service \
                           (%RESPONSE_CODE_DETAILS%): %LOCAL_REPLY_BODY%\n";

/// The network filter for the callers of a namespace, encoded as it stands in a filter chain.
pub(super) fn filter(namespace: &str) -> Bytes {
    let name = "envoy.filters.network.http_connection_manager";
    encoded(&chains::filter(name, &manager(namespace)))
}

fn manager(namespace: &str) -> HttpConnectionManager {
    HttpConnectionManager {
        stat_prefix: "cap_http".to_owned(),
        codec_type: CodecType::Auto.into(),
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            config_source: Some(ads_awaited()),
            route_config_name: routes_of(namespace),
        })),
        common_http_protocol_options: Some(downstream_common()),
        http_protocol_options: Some(downstream_http1()),
        http2_protocol_options: Some(downstream_http2()),
        max_request_headers_kb: number(MAX_HEADERS_KB),
        // No timeout: how long an answer may take is between the application and its backend.
        stream_idle_timeout: never(),
        request_timeout: never(),
        // No header is added, removed or renamed, and the path is left as it came.
        server_header_transformation: ServerHeaderTransformation::PassThrough.into(),
        generate_request_id: truth(false),
        preserve_external_request_id: true,
        use_remote_address: truth(false),
        skip_xff_append: true,
        forward_client_cert_details: ForwardClientCertDetails::AlwaysForwardOnly.into(),
        early_header_mutation_extensions: vec![kept::remember()],
        normalize_path: truth(false),
        path_with_escaped_slashes_action: PathWithEscapedSlashesAction::KeepUnchanged.into(),
        proxy_100_continue: true,
        upgrade_configs: UPGRADES.map(upgrade).to_vec(),
        local_reply_config: Some(local_replies()),
        http_filters: vec![kept::put_back(), router()],
        ..HttpConnectionManager::default()
    }
}

fn upgrade(to: &str) -> UpgradeConfig {
    UpgradeConfig { upgrade_type: to.to_owned(), ..UpgradeConfig::default() }
}

fn router() -> HttpFilter {
    let router = Router { suppress_envoy_headers: true, ..Router::default() };
    HttpFilter {
        name: "envoy.filters.http.router".to_owned(),
        config_type: any(router).map(ConfigType::TypedConfig),
        ..HttpFilter::default()
    }
}

fn local_replies() -> LocalReplyConfig {
    let at_least = ComparisonFilter {
        op: Op::Ge.into(),
        value: Some(RuntimeUInt32 {
            default_value: 400,
            runtime_key: "aether.local_reply_from".to_owned(),
        }),
    };
    let errors = FilterSpecifier::StatusCodeFilter(StatusCodeFilter { comparison: Some(at_least) });
    LocalReplyConfig {
        mappers: vec![ResponseMapper {
            filter: Some(AccessLogFilter { filter_specifier: Some(errors) }),
            body_format_override: Some(format(LOCAL_REPLY)),
            ..ResponseMapper::default()
        }],
        ..LocalReplyConfig::default()
    }
}

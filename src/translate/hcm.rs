//! The HTTP connection manager.

use bytes::{Bytes, BytesMut};
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
use super::kept;
use super::proto::{ads_awaited, any, encoded, format, never, number, truth};
use crate::xds::field;

/// The protocols that a connection may change to. There is no wildcard.
const UPGRADES: [&str; 4] = ["websocket", "spdy/3.1", "tcp", "CONNECT"];

/// The body of every answer of 400 and more that comes from the proxy itself. A backend's own
/// answers never pass the mapper.
const LOCAL_REPLY: &str = "aether: answered by the mesh, not by the service \
                           (%RESPONSE_CODE_DETAILS%): %LOCAL_REPLY_BODY%\n";

/// The fields of a network filter and of an `Any` that are written one by one.
const FILTER_NAME: u32 = 1;
const FILTER_CONFIG: u32 = 4;
const ANY_TYPE: u32 = 1;
const ANY_VALUE: u32 = 2;

/// The network filter, encoded as it stands in a filter chain. All but the name of the route
/// configuration is shared by all callers.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    type_url: String,
    rest: Bytes,
}

impl Filter {
    /// The filter, without a route configuration.
    pub(super) fn new() -> Self {
        let config = any(manager()).unwrap_or_default();
        Self { type_url: config.type_url, rest: config.value.into() }
    }

    /// The filter in two chunks: up to the name of the route configuration, and the rest.
    pub(super) fn naming(&self, routes: &str) -> [Bytes; 2] {
        let rds = encoded(&HttpConnectionManager {
            route_specifier: Some(RouteSpecifier::Rds(Rds {
                config_source: Some(ads_awaited()),
                route_config_name: routes.to_owned(),
            })),
            ..HttpConnectionManager::default()
        });
        let mut any = BytesMut::new();
        field::put(ANY_TYPE, self.type_url.as_bytes(), &mut any);
        field::announce(ANY_VALUE, rds.len() + self.rest.len(), &mut any);
        any.extend_from_slice(&rds);
        let mut head = BytesMut::new();
        field::put(FILTER_NAME, b"envoy.filters.network.http_connection_manager", &mut head);
        field::announce(FILTER_CONFIG, any.len() + self.rest.len(), &mut head);
        head.extend_from_slice(&any);
        [head.freeze(), self.rest.clone()]
    }
}

fn manager() -> HttpConnectionManager {
    HttpConnectionManager {
        stat_prefix: "cap_http".to_owned(),
        codec_type: CodecType::Auto.into(),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use envoy_types::pb::envoy::config::listener::v3::Filter as Decoded;
    use envoy_types::pb::envoy::config::listener::v3::filter::ConfigType::TypedConfig;
    use prost::Message as _;

    use super::*;

    #[test]
    fn the_two_chunks_are_a_filter_that_names_the_routes_and_the_second_is_shared() {
        let filter = Filter::new();
        let [head, rest] = filter.naming("cap_http.shop.web");
        let whole = [head.as_ref(), rest.as_ref()].concat();
        let decoded = Decoded::decode(whole.as_slice()).unwrap();
        assert_eq!(decoded.name, "envoy.filters.network.http_connection_manager");
        let Some(TypedConfig(config)) = decoded.config_type else { panic!("{}", decoded.name) };
        assert_eq!(config.type_url, any(manager()).unwrap().type_url);
        let mut found = HttpConnectionManager::decode(config.value.as_slice()).unwrap();
        let Some(RouteSpecifier::Rds(rds)) = found.route_specifier.take() else {
            panic!("no routes are named")
        };
        assert_eq!(rds.route_config_name, "cap_http.shop.web");
        assert_eq!(rds.config_source, Some(ads_awaited()));
        assert_eq!(found, manager());
        let [_, other] = filter.naming("cap_http.pay");
        assert_eq!(rest.as_ptr(), other.as_ptr());
    }
}

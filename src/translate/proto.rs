//! Small words for building Envoy's messages.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::data_source::Specifier;
use envoy_types::pb::envoy::config::core::v3::socket_address::{PortSpecifier, Protocol};
use envoy_types::pb::envoy::config::core::v3::substitution_format_string::Format;
use envoy_types::pb::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, DataSource, SocketAddress,
    SubstitutionFormatString, TypedExtensionConfig,
};
use envoy_types::pb::google::protobuf::{Any, BoolValue, Duration, UInt32Value};
use envoy_types::util::pack_any;
use prost::{Message, Name};

/// A wrapped number.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn number(value: u32) -> Option<UInt32Value> {
    Some(UInt32Value { value })
}

/// A wrapped truth value.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn truth(value: bool) -> Option<BoolValue> {
    Some(BoolValue { value })
}

/// Milliseconds.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn millis(millis: u32) -> Option<Duration> {
    let nanos = i32::try_from(millis % 1000).unwrap_or(0) * 1_000_000;
    Some(Duration { seconds: i64::from(millis / 1000), nanos })
}

/// Zero, which switches a timeout off.
pub(super) fn never() -> Option<Duration> {
    millis(0)
}

/// Over the aggregated stream.
pub(super) fn ads() -> ConfigSource {
    ConfigSource {
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        resource_api_version: ApiVersion::V3.into(),
        ..ConfigSource::default()
    }
}

/// Over the aggregated stream, however long it takes: a listener without its routes would answer
/// 404 to everything, so it rather waits.
pub(super) fn ads_awaited() -> ConfigSource {
    ConfigSource { initial_fetch_timeout: never(), ..ads() }
}

/// A socket address.
pub(super) fn address(of: SocketAddr, protocol: Protocol) -> Address {
    address_in("", of, protocol)
}

/// A socket address in the network namespace of a file; in Envoy's own where that is empty.
pub(super) fn address_in(netns: &str, of: SocketAddr, protocol: Protocol) -> Address {
    let socket = SocketAddress {
        protocol: protocol.into(),
        network_namespace_filepath: netns.to_owned(),
        ..socket(of)
    };
    Address { address: Some(AddressKind::SocketAddress(socket)) }
}

/// A TCP socket address, as some fields want it.
pub(super) fn socket(of: SocketAddr) -> SocketAddress {
    SocketAddress {
        address: of.ip().to_string(),
        port_specifier: Some(PortSpecifier::PortValue(of.port().into())),
        ..SocketAddress::default()
    }
}

/// The length of the prefix that is this one address.
pub(super) fn whole(ip: IpAddr) -> u32 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// Text inside the configuration.
pub(super) fn text(text: impl Into<String>) -> DataSource {
    DataSource { specifier: Some(Specifier::InlineString(text.into())), ..DataSource::default() }
}

/// Text with command operators; those without a value leave nothing behind.
pub(super) fn format(format: impl Into<String>) -> SubstitutionFormatString {
    SubstitutionFormatString {
        format: Some(Format::TextFormatSource(text(format))),
        omit_empty_values: true,
        ..SubstitutionFormatString::default()
    }
}

/// An extension by its name and configuration.
pub(super) fn extension<T: Name + Message>(name: &str, config: T) -> TypedExtensionConfig {
    TypedExtensionConfig { name: name.to_owned(), typed_config: any(config) }
}

/// A packed message, as most fields want it.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn any<T: Name + Message>(config: T) -> Option<Any> {
    Some(pack_any(config))
}

/// An encoded message.
pub(super) fn encoded(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

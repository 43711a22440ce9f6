//! The descriptor set of the protobuf types that are served or rendered, and JSON by it.
//!
//! The build makes the set of the roots in `proto/roots.txt`. Envoy's JSON is that of protobuf,
//! with the names of fields as in the .proto files.

use std::sync::OnceLock;

use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

/// The encoded `FileDescriptorSet`, imports included.
pub const SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Why a message cannot be put into JSON.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DescriptorError {
    /// The set that the build made cannot be read.
    #[error("the descriptor set of this build cannot be read ({0}): build it again")]
    Set(String),
    /// A type that is not in the set.
    #[error("the type {0} is not in the descriptor set: add its file to proto/roots.txt")]
    UnknownType(String),
    /// Bytes that are not of the type.
    #[error("the bytes of a {message} cannot be read as one")]
    Bytes {
        /// The type.
        message: String,
        /// What prost says.
        source: prost::DecodeError,
    },
    /// A part of the message, most likely an `Any` of a type that is not in the set.
    #[error(
        "a {message} cannot be put into JSON ({reason}): add the file of what it holds to proto/roots.txt"
    )]
    Json {
        /// The type.
        message: String,
        /// What the serializer says.
        reason: String,
    },
}

/// The types of the set.
pub fn pool() -> Result<&'static DescriptorPool, DescriptorError> {
    static POOL: OnceLock<Result<DescriptorPool, DescriptorError>> = OnceLock::new();
    let read =
        || DescriptorPool::decode(SET).map_err(|error| DescriptorError::Set(error.to_string()));
    POOL.get_or_init(read).as_ref().map_err(Clone::clone)
}

/// The JSON of an encoded message of the type `name` (such as `envoy.config.cluster.v3.Cluster`),
/// as proto3 defines it, with the fields' own names, every `Any` resolved, and keys sorted, so
/// that equal messages give equal text.
pub fn to_json(name: &str, bytes: &[u8]) -> Result<Value, DescriptorError> {
    let descriptor = pool()?.get_message_by_name(name);
    let descriptor = descriptor.ok_or_else(|| DescriptorError::UnknownType(name.to_owned()))?;
    let message = DynamicMessage::decode(descriptor, bytes)
        .map_err(|source| DescriptorError::Bytes { message: name.to_owned(), source })?;
    let options = SerializeOptions::new().use_proto_field_name(true);
    message.serialize_with_options(serde_json::value::Serializer, &options).map_err(|error| {
        DescriptorError::Json { message: name.to_owned(), reason: error.to_string() }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use envoy_types::pb::envoy::config::cluster::v3::Cluster;
    use envoy_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
    use envoy_types::pb::google::protobuf::{Any, Duration, UInt32Value};
    use prost::Message;
    use serde_json::json;

    use super::*;

    const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";

    #[test]
    fn json_has_the_fields_own_names_and_resolves_any() {
        let type_url = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
        let options = Any {
            type_url: type_url.to_owned(),
            value: HttpProtocolOptions::default().encode_to_vec(),
        };
        let cluster = Cluster {
            name: "c".to_owned(),
            connect_timeout: Some(Duration { seconds: 1, nanos: 500_000_000 }),
            per_connection_buffer_limit_bytes: Some(UInt32Value { value: 0 }),
            typed_extension_protocol_options: [("o".to_owned(), options)].into(),
            ..Cluster::default()
        };
        let expected = json!({
            "name": "c",
            "connect_timeout": "1.500s",
            "per_connection_buffer_limit_bytes": 0,
            "typed_extension_protocol_options": { "o": { "@type": type_url } },
        });
        assert_eq!(to_json(CLUSTER, &cluster.encode_to_vec()).unwrap(), expected);
    }

    #[test]
    fn what_is_not_in_the_set_is_named() {
        let error = to_json("no.such.Type", &[]).unwrap_err().to_string();
        assert!(error.contains("no.such.Type") && error.contains("proto/roots.txt"), "{error}");

        let any =
            Any { type_url: "type.googleapis.com/no.such.Type".to_owned(), value: Vec::new() };
        let cluster = Cluster {
            typed_extension_protocol_options: [("o".to_owned(), any)].into(),
            ..Cluster::default()
        };
        let error = to_json(CLUSTER, &cluster.encode_to_vec()).unwrap_err().to_string();
        assert!(error.contains("no.such.Type") && error.contains("proto/roots.txt"), "{error}");

        let error = to_json(CLUSTER, &[0xff]).unwrap_err().to_string();
        assert!(error.contains(CLUSTER), "{error}");
    }

    #[test]
    fn every_type_that_is_served_is_in_the_set() {
        for kind in crate::xds::Kind::ALL {
            let name = kind.type_url().trim_start_matches("type.googleapis.com/");
            assert!(pool().unwrap().get_message_by_name(name).is_some(), "{name}");
        }
        for service in [
            "envoy.service.discovery.v3.AggregatedDiscoveryService",
            "envoy.service.cluster.v3.ClusterDiscoveryService",
            "envoy.service.endpoint.v3.EndpointDiscoveryService",
            "envoy.service.listener.v3.ListenerDiscoveryService",
            "envoy.service.route.v3.RouteDiscoveryService",
            "envoy.service.route.v3.VirtualHostDiscoveryService",
            "envoy.service.status.v3.ClientStatusDiscoveryService",
        ] {
            assert!(pool().unwrap().get_service_by_name(service).is_some(), "{service}");
        }
    }
}

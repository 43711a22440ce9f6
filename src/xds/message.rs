//! Requests as they stand on the wire, with the fields that this server reads and no others.
//!
//! An Envoy tells hundreds of its extensions in `node`; skipping what nobody asks for is much
//! cheaper than decoding it for each of a thousand streams that reconnect at once. Field numbers
//! are those of `envoy/service/discovery/v3/discovery.proto`.

use std::collections::HashMap;

/// `envoy.config.core.v3.Node`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Node {
    #[prost(string, tag = "1")]
    pub(super) id: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Status {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

/// `DiscoveryRequest`. The version is not read: a refusal is never inferred from it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct SotwRequest {
    #[prost(message, optional, tag = "2")]
    pub(super) node: Option<Node>,
    #[prost(string, repeated, tag = "3")]
    pub(super) names: Vec<String>,
    #[prost(string, tag = "4")]
    pub(super) type_url: String,
    #[prost(string, tag = "5")]
    pub(super) nonce: String,
    #[prost(message, optional, tag = "6")]
    pub(super) error: Option<Status>,
}

/// `DeltaDiscoveryRequest`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct DeltaRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) node: Option<Node>,
    #[prost(string, tag = "2")]
    pub(super) type_url: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) subscribe: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub(super) unsubscribe: Vec<String>,
    #[prost(map = "string, string", tag = "5")]
    pub(super) initial: HashMap<String, String>,
    #[prost(string, tag = "6")]
    pub(super) nonce: String,
    #[prost(message, optional, tag = "7")]
    pub(super) error: Option<Status>,
}

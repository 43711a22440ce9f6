//! The messages of delta xDS, as far as a load client looks: what it does not name is skipped, and a resource's bytes
//! are a part of the buffer that they came in.

use prost::Message;
use prost::bytes::Bytes;

/// `DeltaDiscoveryResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct Response {
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Resource>,
    #[prost(string, tag = "4")]
    pub type_url: String,
    #[prost(string, tag = "5")]
    pub nonce: String,
    #[prost(string, repeated, tag = "6")]
    pub removed_resources: Vec<String>,
}

/// `Resource`.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(message, optional, tag = "2")]
    pub body: Option<Any>,
    #[prost(string, tag = "3")]
    pub name: String,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// `Cluster`: under which name it asks for its endpoints.
#[derive(Clone, PartialEq, Message)]
pub struct Cluster {
    #[prost(message, optional, tag = "3")]
    pub eds_cluster_config: Option<Eds>,
}

/// `Cluster.EdsClusterConfig`.
#[derive(Clone, PartialEq, Message)]
pub struct Eds {
    #[prost(string, tag = "2")]
    pub service_name: String,
}

impl Resource {
    /// The name of the endpoints of a cluster; `None` where it asks for none.
    pub fn endpoints(&self) -> Option<String> {
        let cluster = Cluster::decode(self.body.as_ref()?.value.clone()).ok()?;
        Some(cluster.eds_cluster_config?.service_name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use envoy_types::pb::envoy::config::cluster::v3 as config;
    use envoy_types::pb::envoy::service::discovery::v3 as discovery;
    use envoy_types::pb::google::protobuf;

    use super::*;

    #[test]
    fn they_are_read_as_they_were_written() {
        let eds = config::cluster::EdsClusterConfig {
            service_name: "shop/web:80".to_owned(),
            ..Default::default()
        };
        let cluster = config::Cluster { eds_cluster_config: Some(eds), ..Default::default() };
        let any = protobuf::Any { type_url: "c".to_owned(), value: cluster.encode_to_vec() };
        let resource = discovery::Resource {
            name: "http:web".to_owned(),
            version: "7".to_owned(),
            resource: Some(any),
            ..Default::default()
        };
        let written = discovery::DeltaDiscoveryResponse {
            type_url: "c".to_owned(),
            nonce: "n".to_owned(),
            resources: vec![resource],
            removed_resources: vec!["gone".to_owned()],
            ..Default::default()
        };
        let read = Response::decode(&*written.encode_to_vec()).unwrap();
        assert_eq!((&*read.type_url, &*read.nonce), ("c", "n"));
        assert_eq!(read.removed_resources, ["gone"]);
        let only = read.resources.first().unwrap();
        assert_eq!((&*only.name, &*only.version), ("http:web", "7"));
        assert_eq!(only.endpoints().unwrap(), "shop/web:80");
    }
}

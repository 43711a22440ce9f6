//! What can be seen of a running server: gRPC services beside the discovery services, and JSON.
//!
//! CSDS tells what each proxy has, resource by resource; `grpc.health.v1` whether the server
//! serves; server reflection the types of everything that is sent, so that `grpcurl` prints it.
//! [`Nodes`] and [`snapshot`] say the like in JSON, for the admin server and `aether status`.

mod csds;
mod grpc;
mod health;
mod nodes;
mod reflection;
mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::sync::watch;
use tonic::Status;

pub use health::Serving;
pub use nodes::{Answered, Nodes, OfType, Refused, Sent, Stream};
pub use snapshot::{Question, Unanswered, page as snapshot};

use crate::xds::{Answer, Clients, Snapshot};
use csds::Csds;

/// The names of all services that are served on the addresses for proxies.
pub const SERVICES: [&str; 10] = [
    "envoy.service.cluster.v3.ClusterDiscoveryService",
    AGGREGATED,
    "envoy.service.endpoint.v3.EndpointDiscoveryService",
    "envoy.service.listener.v3.ListenerDiscoveryService",
    "envoy.service.route.v3.RouteDiscoveryService",
    "envoy.service.route.v3.VirtualHostDiscoveryService",
    "envoy.service.status.v3.ClientStatusDiscoveryService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// The aggregated discovery service.
const AGGREGATED: &str = "envoy.service.discovery.v3.AggregatedDiscoveryService";

/// The services that are not discovery services, for [`Server::beside`](crate::xds::Server::beside).
pub fn services(
    clients: Arc<Clients>,
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    serving: &Serving,
) -> Answer {
    let serving = serving.subscribe();
    let csds = Csds::new(clients, snapshots);
    Arc::new(move |request| {
        let (serving, csds) = (serving.clone(), csds.clone());
        Box::pin(async move {
            let path = request.uri().path();
            match path {
                "/grpc.health.v1.Health/Check" => health::check(serving, request).await,
                "/grpc.health.v1.Health/Watch" => health::watch(serving, request).await,
                // The two versions differ in nothing but the name of the package.
                "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
                | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => {
                    reflection::answer(request).await
                }
                path if path.starts_with("/envoy.service.status.v3.") => csds.answer(request).await,
                _ => {
                    let words = format!("no such method: {path}");
                    Status::unimplemented(words).into_http()
                }
            }
        })
    })
}

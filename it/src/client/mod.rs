//! Clients. Each runs where it is called: in a pod through [`crate::net::Pod::run`].

mod dns;
mod grpc;
mod h2c;
mod http1;
mod tcp;
mod ws;

pub use dns::{Records, ask};
pub use grpc::GrpcClient;
pub use h2c::{H2Answer, H2c};
pub use http1::{Answer, Http1, get, request};
pub use tcp::{Received, drain, pull, push, say};
pub use ws::websocket;

use std::time::Duration;

/// What a client waits for an answer, a slow one of 20 s included.
pub const PATIENCE: Duration = Duration::from_mins(1);

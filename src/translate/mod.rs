//! The projection, translated to Envoy's resources. Pure; never awaits.
//!
//! A [`Translator`] takes one projection after the other and returns the snapshot that is served.
//! Every name, chain, domain and endpoint is sorted before it is encoded, so that equal state gives
//! equal bytes and a change touches only what changed. What differs from proxy to proxy is never
//! made for each: see [`crate::xds::Snapshot`].

mod chains;
mod checks;
mod claims;
mod cluster;
mod dns;
mod domains;
mod endpoints;
mod hcm;
mod http_options;
mod kept;
mod listener;
mod listeners;
mod members;
pub mod naming;
mod node_proxies;
mod part;
mod patch;
mod proto;
mod proxies;
mod route_config;
mod routes;
mod scope;
mod service;
mod settings;
mod tables;
mod translator;

#[cfg(test)]
mod tests;

pub use cluster::node_proxy_bind;
pub use settings::{CaptureMode, CaptureModeError, DnsFilter, SERVER_FIRST_PORTS, Settings};
pub use translator::{Translated, Translator};

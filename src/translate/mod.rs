//! The projection, translated to Envoy's resources. Pure; never awaits.
//! PLACEHOLDER of the cli branch: dropped at the merge.
#![allow(missing_docs)]

use std::net::SocketAddr;
use std::sync::Arc;

use crate::model::{Finding, MeshNames, Projection};
use crate::xds;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureMode {
    RedirectAll,
    Scoped,
}

impl std::str::FromStr for CaptureMode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "redirect-all" => Ok(Self::RedirectAll),
            "scoped" => Ok(Self::Scoped),
            _ => Err(text.to_owned()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsFilter {
    pub upstream: Vec<SocketAddr>,
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub names: MeshNames,
    pub mode: CaptureMode,
    pub server_first_ports: Vec<u16>,
    pub dns: Option<DnsFilter>,
}

#[derive(Debug)]
pub struct Translated {
    pub snapshot: Arc<xds::Snapshot>,
    pub findings: Vec<Finding>,
}

#[derive(Debug)]
pub struct Translator(#[allow(dead_code)] Settings);

impl Translator {
    pub fn new(settings: Settings) -> Self {
        Self(settings)
    }
    pub fn translate(&mut self, _projection: &Projection) -> Translated {
        Translated { snapshot: Arc::default(), findings: Vec::new() }
    }
}

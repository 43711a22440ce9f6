//! `aether render`: everything that one node would get, in Envoy's own JSON.

mod inline;
mod resources;
mod waiting;

use anyhow::{Context, Result};
use clap::Args;
use prost::Message;

use super::bootstrap::AdminSocket;
use super::options::{Shaping, Source};
use super::pins::PinnedNamespaces;
use crate::model::NodeId;
use crate::xds::View;
use crate::{descriptors, run};
use resources::Resources;

/// Print all resources that a node would get, as JSON.
///
/// Listeners, routes, clusters and endpoints, in Envoy's own JSON, with virtual hosts inside their
/// routes. A proxy that would wait is an error that says why.
#[derive(Debug, Clone, Args)]
pub struct Render {
    /// Whose Envoy it is: `pod/<namespace>/<name>` or `node/<node name>`.
    #[arg(long, env = "AETHER_NODE", value_name = "ID")]
    node: NodeId,

    /// Print a static bootstrap that Envoy runs as it is, without us, instead.
    #[arg(long)]
    bootstrap: bool,

    #[command(flatten)]
    admin: AdminSocket,

    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    shaping: Shaping,

    #[command(flatten)]
    pins: PinnedNamespaces,
}

impl Render {
    /// Reads the objects once, and prints.
    pub fn run(&self) -> Result<()> {
        let (translate, index) = self.shaping.settings()?;
        let pins = match &self.node {
            NodeId::Node(_) => self.pins.folder(),
            NodeId::Pod(_) => None,
        };
        let once = run::once_with(&self.source.objects(), pins.as_deref(), translate, index)?;
        // State of the world: its routes hold their virtual hosts.
        let view = View::new(&once.snapshot, &self.node.to_string(), &"sotw".into())
            .with_context(|| waiting::why(&self.node, &once))?;
        let resources = Resources::of(&view)?;
        if !self.bootstrap {
            return super::print(&resources);
        }
        let bootstrap = inline::bootstrap(&resources, &self.node, self.admin.admin()?)?;
        let bootstrap = bootstrap.encode_to_vec();
        super::print(&descriptors::to_json("envoy.config.bootstrap.v3.Bootstrap", &bootstrap)?)
    }
}

#[cfg(test)]
mod tests;

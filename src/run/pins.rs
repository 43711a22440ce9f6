//! The pinned network namespaces that node proxies are served by.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::model::Pins;
use crate::source::pins;

/// What follows them, until it is dropped.
pub(super) struct Following {
    /// What was seen last.
    pub(super) pins: watch::Receiver<Option<Arc<Pins>>>,
    _task: AbortOnDropHandle<()>,
}

/// Follows a folder of pins, where there is to be one.
pub(super) fn follow(folder: Option<PathBuf>) -> Option<Following> {
    let (pins, follow) = pins::watch(folder?);
    Some(Following { pins, _task: AbortOnDropHandle::new(tokio::spawn(follow)) })
}

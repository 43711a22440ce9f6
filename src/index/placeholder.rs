#![allow(missing_docs)]
use std::collections::BTreeSet;

use super::Change;
use crate::model::{MeshNames, Projection};

#[derive(Debug, Clone)]
pub struct Settings {
    pub names: MeshNames,
    pub never_touched: BTreeSet<String>,
}

#[derive(Debug)]
pub struct Index(#[allow(dead_code)] Settings);

impl Index {
    pub fn new(settings: Settings) -> Self {
        Self(settings)
    }
    pub fn apply(&mut self, _change: Change) {}
    pub fn project(&mut self) -> Projection {
        Projection::default()
    }
}

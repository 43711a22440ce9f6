//! Collecting findings about one object.

use std::sync::Arc;

use crate::model::{Finding, ObjectRef, Reason, Severity};

/// Takes findings about one object.
#[derive(Debug)]
pub struct Report {
    object: ObjectRef,
    origin: Option<Arc<str>>,
    found: Vec<Finding>,
}

impl Report {
    /// An empty report about an object.
    pub fn new(object: ObjectRef, origin: Option<Arc<str>>) -> Self {
        Self { object, origin, found: Vec::new() }
    }

    /// Something is left out.
    pub fn problem(&mut self, reason: Reason, field: &str, message: String, way_out: &str) {
        self.add(Severity::Problem, reason, field, message, way_out);
    }

    /// It works, but perhaps not as its author thinks.
    pub fn warning(&mut self, reason: Reason, field: &str, message: String, way_out: &str) {
        self.add(Severity::Warning, reason, field, message, way_out);
    }

    fn add(
        &mut self,
        severity: Severity,
        reason: Reason,
        field: &str,
        message: String,
        way_out: &str,
    ) {
        self.found.push(Finding {
            object: self.object.clone(),
            severity,
            reason,
            origin: self.origin.clone(),
            field: field.to_owned(),
            message,
            way_out: way_out.to_owned(),
        });
    }

    /// What was found.
    pub fn into_findings(self) -> Vec<Finding> {
        self.found
    }
}

//! The findings of the table, in words.

use std::ffi::OsStr;

use crate::index::Id;
use crate::model::{Finding, Reason, Severity};
use crate::source::manifest::{Lost, Problem};

use super::Form;

/// That an object stands twice.
pub(super) fn duplicate(id: &Id, loser: &Form, winner: &Form) -> Finding {
    let same = loser.json == winner.json;
    let forms = if same { "in the same form" } else { "in another form" };
    Finding {
        object: id.object_ref(),
        severity: if same { Severity::Warning } else { Severity::Problem },
        reason: Reason::DuplicateObject,
        origin: Some(loser.origin.clone()),
        field: String::new(),
        message: format!(
            "it stands {forms} in {} too, which is later and counts alone",
            winner.origin
        ),
        way_out: "remove one of the two".to_owned(),
    }
}

/// That a file which held objects is empty: more likely cut than meant.
pub(super) fn emptied(path: &OsStr) -> Problem {
    let name = path.to_string_lossy();
    let mut problem = Problem::file(
        &name,
        &name,
        "the file is empty",
        "if its objects are to go, delete the file, or leave a comment in it",
    );
    problem.finding.severity = Severity::Warning;
    problem
}

/// The finding, with what was kept in spite of the problem.
pub(super) fn with_kept(problem: Problem, kept: &[Id]) -> Finding {
    let mut finding = problem.finding;
    let count = kept.iter().filter(|id| problem.lost.covers(id)).count();
    let consequence = match (&problem.lost, count) {
        (Lost::Nothing, _) => ", and is ignored".to_owned(),
        (Lost::Object(_), 0) => ", so the object is left out".to_owned(),
        (Lost::Object(_), _) => ", so the object's last good form is kept".to_owned(),
        (Lost::Kind(_) | Lost::Anything, 0) => String::new(),
        (Lost::Kind(_) | Lost::Anything, 1) => {
            ", so the one object that the file held and that is missing is kept in its last good form".to_owned()
        }
        (Lost::Kind(_) | Lost::Anything, count) => {
            format!(", so the {count} objects that the file held and that are missing are kept in their last good form")
        }
    };
    finding.message.push_str(&consequence);
    finding
}

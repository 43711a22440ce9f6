//! `aether check`: what is wrong with the objects, in words that a user can act on.

mod names;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::options::{Shaping, Source};
use crate::model::{Finding, Severity};
use crate::run;

/// Report what is quarantined, loses a conflict or cannot work, with the way out.
///
/// Exit status: 0 nothing, or warnings alone; 1 some problem; 2 the objects cannot be looked at.
#[derive(Debug, Clone, Args)]
pub struct Check {
    #[command(flatten)]
    source: Source,

    /// One JSON object a line, for programs.
    #[arg(long)]
    json: bool,

    /// Print every mesh name too, with its addresses and who answers for it.
    #[arg(long)]
    names: bool,

    #[command(flatten)]
    shaping: Shaping,
}

/// The exit status where nothing could be looked at.
pub const COULD_NOT_LOOK: u8 = 2;

impl Check {
    /// Looks, reports to stdout, and sums up on stderr.
    pub fn run(&self) -> Result<ExitCode> {
        let (translate, index) = self.shaping.settings()?;
        let domains = translate.names.clone();
        let by = if translate.dns.is_some() { names::By::DnsFilter } else { names::By::Resolver };
        let once = run::once(&self.source.objects(), translate, index)?;
        let findings = order(once.findings);
        write(&findings, self.json, &mut io::stdout().lock()).context("stdout")?;
        if self.names {
            let all = names::all(&once.projection, &domains);
            names::write(&all, by, self.json, &mut io::stdout().lock()).context("stdout")?;
        }
        eprintln!(
            "{}; {} and {}",
            summary(&findings),
            count(once.projection.services.len(), "mesh service"),
            count(once.projection.pods.len(), "managed pod"),
        );
        let problem = findings.iter().any(|finding| finding.severity == Severity::Problem);
        Ok(ExitCode::from(u8::from(problem)))
    }
}

/// Problems first, then by object; each once.
fn order(findings: Vec<Finding>) -> Vec<Finding> {
    let once: BTreeSet<Finding> = findings.into_iter().collect();
    let mut findings: Vec<Finding> = once.into_iter().collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// A line for each.
fn write(findings: &[Finding], json: bool, out: &mut impl Write) -> io::Result<()> {
    for finding in findings {
        if json {
            let object = json!({
                "severity": finding.severity.to_string(),
                "reason": finding.reason.as_str(),
                "kind": finding.object.kind,
                "namespace": &*finding.object.namespace,
                "name": &*finding.object.name,
                "origin": finding.origin.as_deref(),
                "field": finding.field,
                "message": finding.message,
                "wayOut": finding.way_out,
            });
            writeln!(out, "{object}")?;
        } else {
            // What a user wrote may hold a line break; a finding is one line all the same.
            let line = finding.to_string().replace(char::is_control, " ");
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}

/// The counts in words.
fn summary(findings: &[Finding]) -> String {
    let of = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    match (of(Severity::Problem), of(Severity::Warning)) {
        (0, 0) => "nothing found".to_owned(),
        (problems, warnings) => {
            format!("{}, {}", count(problems, "problem"), count(warnings, "warning"))
        }
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::model::{ObjectRef, Reason};

    fn finding(severity: Severity, name: &str) -> Finding {
        Finding {
            object: ObjectRef::new("Service", "shop", name),
            severity,
            reason: Reason::ConflictingKey,
            origin: Some("a.yaml#2".into()),
            field: "metadata.annotations".to_owned(),
            message: "another one has\na name".to_owned(),
            way_out: "rename it".to_owned(),
        }
    }

    #[test]
    fn problems_stand_first_and_each_once() {
        let (a, b, c) = (
            finding(Severity::Warning, "a"),
            finding(Severity::Problem, "b"),
            finding(Severity::Problem, "c"),
        );
        let given = vec![c.clone(), a.clone(), b.clone(), c.clone()];
        assert_eq!(order(given), [b, c, a]);
    }

    #[test]
    fn the_summary_counts_in_words() {
        use Severity::{Problem, Warning};
        assert_eq!(summary(&[]), "nothing found");
        assert_eq!(summary(&[finding(Problem, "a")]), "1 problem, 0 warnings");
        let two = [finding(Warning, "a"), finding(Warning, "b")];
        assert_eq!(summary(&two), "0 problems, 2 warnings");
    }

    #[test]
    fn text_has_one_finding_a_line_whatever_it_quotes() {
        let mut out = Vec::new();
        write(&[finding(Severity::Problem, "a")], false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "problem ConflictingKey: Service shop/a (a.yaml#2), metadata.annotations: \
             another one has a name; rename it\n"
        );
    }

    #[test]
    fn json_has_one_object_a_line() {
        let mut out = Vec::new();
        write(&[finding(Severity::Problem, "a")], true, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["wayOut"], "rename it");
        assert_eq!(object["origin"], "a.yaml#2");
    }
}

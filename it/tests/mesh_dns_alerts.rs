//! The alert rules: Prometheus can read them, and they are about metrics that there are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use promql_parser::parser::Expr;
use serde_json::Value;

fn rules() -> Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/manifests/alerts.yaml");
    let manifest: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
    ensure!(
        manifest["kind"] == "PrometheusRule"
            && manifest["apiVersion"] == "monitoring.coreos.com/v1"
    );
    let groups = manifest["spec"]["groups"].as_array().context("spec.groups")?;
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten());
    Ok(rules.cloned().collect())
}

/// The metrics that an expression looks at.
fn metrics(expr: &Expr, found: &mut BTreeSet<String>) {
    match expr {
        Expr::Binary(binary) => {
            metrics(&binary.lhs, found);
            metrics(&binary.rhs, found);
        }
        Expr::VectorSelector(selector) => found.extend(selector.name.clone()),
        Expr::MatrixSelector(selector) => found.extend(selector.vs.name.clone()),
        Expr::Paren(inner) => metrics(&inner.expr, found),
        Expr::Call(call) => call.args.args.iter().for_each(|arg| metrics(arg, found)),
        _ => {}
    }
}

#[test]
fn every_rule_is_promql_about_metrics_that_there_are() -> Result<()> {
    let served = aether::dns::Metrics::new();
    let mut registry = prometheus_client::registry::Registry::with_prefix("aether");
    served.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;

    let mut about = BTreeSet::new();
    for rule in rules()? {
        let name = rule["alert"].as_str().context("a rule without a name")?;
        let expr = rule["expr"].as_str().with_context(|| format!("{name} has no expr"))?;
        let parsed = promql_parser::parser::parse(expr);
        let parsed = parsed.map_err(|error| anyhow::anyhow!("{name}: {expr}: {error}"))?;
        metrics(&parsed, &mut about);
        for field in ["summary", "description"] {
            let words = rule["annotations"][field].as_str().unwrap_or_default();
            ensure!(words.len() > 20, "{name} has no {field}");
        }
        ensure!(rule["for"].is_string() && rule["labels"]["severity"].is_string(), "{name}");
    }
    let expected =
        ["aether_mesh_dns_selfcheck_answered_at", "aether_mesh_dns_snapshot_age_seconds", "up"];
    ensure!(about.iter().eq(expected), "{about:?}");
    // Prometheus' own, of each target.
    about.remove("up");
    for metric in about {
        let there = text.lines().any(|line| line.starts_with(&format!("{metric} ")));
        ensure!(there, "{metric} is not among\n{text}");
    }
    let old = rules()?.into_iter().find(|rule| rule["expr"].as_str().unwrap().contains("_age_"));
    let old = old.context("no rule about the age")?;
    ensure!(old["expr"].as_str().unwrap().ends_with("> 300") && old["for"] == "5m");
    Ok(())
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;
use crate::model::RecordsFile;

#[test]
fn the_text_has_every_name_of_the_metrics() {
    let metrics = Metrics::new();
    assert!(metrics.text().contains("aether_mesh_dns_snapshot_age_seconds NaN"));
    let now = unix_now().as_secs();
    let file = RecordsFile { written_at: now - 100, generation: 7, ..RecordsFile::default() };
    let (table, _) = Table::new(&file);
    metrics.table(&table, 0);
    metrics.query(Outcome::Mesh, Proto::Udp, Some(RecordType::A));
    metrics.query(Outcome::Malformed, Proto::Tcp, None);
    metrics.upstream_answered("10.96.0.10:53", Duration::from_millis(3));
    metrics.upstream_failed("10.96.0.10:53");
    metrics.mesh_answered(Duration::from_micros(3));
    metrics.self_checked(true);
    let text = metrics.text();
    for line in [
        "aether_mesh_dns_snapshot_generation 7",
        &format!("aether_mesh_dns_snapshot_written_at {}", now - 100),
        "aether_mesh_dns_snapshot_records 0",
        r#"aether_mesh_dns_queries_total{result="mesh",proto="udp",qtype="A"} 1"#,
        r#"aether_mesh_dns_queries_total{result="malformed",proto="tcp",qtype="none"} 1"#,
        r#"aether_mesh_dns_upstream_failures_total{upstream="10.96.0.10:53"} 1"#,
        r#"aether_mesh_dns_upstream_seconds_count{upstream="10.96.0.10:53"} 1"#,
        r#"aether_mesh_dns_mesh_seconds_bucket{le="0.000005"} 1"#,
        "aether_mesh_dns_selfcheck_failures_total 0",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let age = text.lines().find_map(|l| l.strip_prefix("aether_mesh_dns_snapshot_age_seconds "));
    let age: f64 = age.unwrap().parse().unwrap();
    assert!((100.0..102.0).contains(&age), "{age}");
}

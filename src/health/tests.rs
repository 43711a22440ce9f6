use super::{Health, State};

#[test]
fn the_process_is_ready_when_all_that_counts_is() {
    let health = Health::default();
    let (source, webhook) = (health.part("source"), health.apart("webhook"));
    assert!(!health.report().ready);
    source.waiting("no list of Pods yet");
    assert_eq!(health.report().to_string(), "source: not ready: no list of Pods yet\nnot ready\n");
    source.ready();
    assert!(health.report().ready, "the webhook stands apart");
    assert!(!health.report_of("webhook").is_some_and(|report| report.ready));
    webhook.ready();
    assert!(health.report_of("webhook").is_some_and(|report| report.ready));
    assert_eq!(health.report_of("nothing"), None);
}

#[test]
fn what_is_degraded_still_serves() {
    let health = Health::default();
    let source = health.part("source");
    source.degraded("Pods may not be watched");
    let report = health.report();
    assert!(report.ready);
    assert_eq!(report.to_string(), "source: ready, but Pods may not be watched\nready\n");
    assert_eq!(source.state(), State::Degraded("Pods may not be watched".to_owned()));
}

#[test]
fn whoever_drains_is_not_ready() {
    let health = Health::default();
    health.part("source").ready();
    assert!(health.report().ready);
    health.clone().drain();
    assert!(!health.report().ready);
    assert!(!health.report_of("source").is_some_and(|report| report.ready));
}

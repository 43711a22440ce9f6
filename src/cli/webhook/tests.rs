#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    webhook: Webhook,
    #[command(flatten)]
    injection: Injection,
}

fn options(line: &str) -> Result<Option<Options>> {
    let line = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()))?;
    line.webhook.options(&line.injection, &index::Settings::default())
}

#[test]
fn it_is_off_until_it_has_an_address() {
    assert_eq!(options("").unwrap(), None);
    assert_eq!(options("--webhook-address none").unwrap(), None);
    let on = options("--webhook-address 0.0.0.0:9443").unwrap().unwrap();
    assert_eq!(on.address, "0.0.0.0:9443".parse().unwrap());
    assert!(matches!(on.certificate, Certificate::Builtin(_)), "{:?}", on.certificate);
    assert_eq!(on.drain, Duration::from_secs(5));
    assert!(on.settings.pod_ndots && on.settings.gate.is_none());
}

#[test]
fn a_pair_of_files_is_a_pair() {
    let files = options(
        "--webhook-address [::]:1 --webhook-cert-mode files --webhook-cert a --webhook-key b",
    );
    let (cert, key) = ("a".into(), "b".into());
    assert_eq!(files.unwrap().unwrap().certificate, Certificate::Files { cert, key });
    for line in [
        "--webhook-cert-mode files",
        "--webhook-cert-mode files --webhook-cert a",
        "--webhook-cert-mode files --webhook-key b",
        "--webhook-cert a --webhook-key b",
        "--webhook-key b",
    ] {
        let error = options(line).unwrap_err();
        assert!(error.is::<WrongOptions>(), "{line}: {error}");
        assert!(error.to_string().contains("--webhook-cert-mode files"), "{line}: {error}");
    }
}

#[test]
fn wrong_settings_of_the_gate_are_refused_even_where_the_webhook_is_off() {
    let error = options("--identity-gate-image A --identity-gate-socket x").unwrap_err();
    assert!(error.is::<WrongSettings>(), "{error}");
    for part in ["--identity-gate-image", "--identity-gate-socket"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    // An empty text is an environment's way to say nothing.
    let empty = "--identity-gate-image= --identity-gate-timeout= --identity-gate-cpu-limit=";
    assert_eq!(options(empty).unwrap(), None);
}

#[test]
fn a_drain_is_a_duration() {
    for (text, expected) in [("0", 0), ("0s", 0), ("500ms", 500), ("5s", 5000), ("1m", 60_000)] {
        assert_eq!(duration(text), Ok(Duration::from_millis(expected)), "{text}");
    }
    for text in ["", "5", "-1s", "1.5s", "s", "5 s", "99999999999s"] {
        assert!(duration(text).is_err(), "{text}");
    }
}

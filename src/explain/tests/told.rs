//! The answer as text and as JSON.

use super::world::{ask, shop};
use crate::explain::{Explanation, text};
use crate::translate::CaptureMode::RedirectAll;

#[test]
fn text_has_numbered_steps_and_the_verdict_last() {
    let told = text(&ask(&shop(), "shop/front ledger:3306", RedirectAll));
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines[0], "shop/front to ledger:3306");
    for start in [
        "  1 pod         ",
        "  2 name        ",
        "  3 service     ",
        "  4 redirection ",
        "  5 inspection  ",
        "  6 chain       ",
        "  7 cluster     ",
        "  8 endpoints   ",
    ] {
        assert_eq!(
            lines.iter().filter(|line| line.starts_with(start)).count(),
            1,
            "{start}\n{told}"
        );
    }
    assert!(told.contains("    if it speaks anything:\n"), "{told}");
    assert_eq!(
        *lines.last().unwrap(),
        "It reaches shop/ledger, port 3306, at 10.244.0.5:3306 (Pod shop/ledger-5)."
    );
    let told = text(&ask(&shop(), "shop/front mixed", RedirectAll));
    assert!(told.contains("    if it speaks HTTP:\n") && told.contains("as in 9 above"), "{told}");
}

#[test]
fn a_line_is_one_whatever_is_quoted() {
    let mut told = ask(&shop(), "shop/front web http", RedirectAll);
    told.steps[0].says = "a\nb\u{7}c".to_owned();
    assert!(text(&told).contains("a b c\n"));
}

#[test]
fn json_goes_there_and_back() {
    for asked in ["web", "empty", "ledger:80", "127.0.0.1", "broken", "web.shop:9", "example.com"] {
        let told = ask(&shop(), &format!("shop/front {asked}"), RedirectAll);
        let json = serde_json::to_string(&told).unwrap();
        assert_eq!(serde_json::from_str::<Explanation>(&json).unwrap(), told, "{json}");
    }
    let told = ask(&shop(), "shop/front web http", RedirectAll);
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(json["pod"], "shop/front");
    assert_eq!(json["paths"][0]["speaks"][0], "http");
    assert_eq!(json["paths"][0]["outcome"]["kind"], "service");
    assert_eq!(json["paths"][0]["outcome"]["endpoints"][0]["address"], "10.244.0.1:8080");
    assert_eq!(json["steps"][0]["topic"], "pod");
}

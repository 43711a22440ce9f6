//! Reading what a pod's annotations say of its redirection.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::values;
use crate::index::Report;
use crate::index::facts::{IpRange, RedirectionFacts};
use crate::index::keys;
use crate::model::{Reason, quoted};

/// The annotations, where there are any. A wrong value costs the annotation that has it, and is
/// reported.
pub fn redirection(
    annotations: Option<&BTreeMap<String, String>>,
    report: &mut Report,
) -> Option<Box<RedirectionFacts>> {
    let given = |key| values::of(annotations, key);
    let all = given(keys::REDIRECT_ALL);
    let ports = given(keys::EXCLUDE_PORTS);
    let ranges = given(keys::EXCLUDE_RANGES);
    if all.is_none() && ports.is_none() && ranges.is_none() {
        return None;
    }
    let mut wrong = |key, what: &str, way_out| {
        let message = format!(
            "{} is {what}, so the annotation counts for nothing",
            quoted(what_of(given(key)))
        );
        report.problem(Reason::InvalidValue, &values::annotation(key), message, way_out);
    };
    let mut facts = RedirectionFacts::default();
    match all {
        Some("true") => facts.redirect_all = Some(true),
        Some("false") => facts.redirect_all = Some(false),
        Some(_) => wrong(keys::REDIRECT_ALL, "neither true nor false", "write true or false"),
        None => {}
    }
    match words(ports).map(port_range).collect() {
        Some(ports) => facts.ports = ports,
        None => wrong(
            keys::EXCLUDE_PORTS,
            "no list of ports",
            "list ports of 1 to 65535, or ranges of them, with commas between, as in 3306,8000-8010",
        ),
    }
    match words(ranges).map(ip_range).collect() {
        Some(ranges) => facts.ranges = ranges,
        None => wrong(
            keys::EXCLUDE_RANGES,
            "no list of addresses",
            "list addresses, or ranges of them, with commas between, as in 10.0.0.0/8,fd00::7",
        ),
    }
    Some(Box::new(facts))
}

fn what_of(value: Option<&str>) -> &str {
    value.unwrap_or_default()
}

fn words(text: Option<&str>) -> impl Iterator<Item = &str> {
    let words = text.into_iter().flat_map(|text| text.split(','));
    words.map(str::trim).filter(|word| !word.is_empty())
}

fn port_range(word: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let (first, last) = (values::port(first.trim())?, values::port(last.trim())?);
    (first <= last).then_some(first..=last)
}

fn ip_range(word: &str) -> Option<IpRange> {
    let (address, width) = match word.split_once('/') {
        Some((address, width)) => (address, Some(width)),
        None => (word, None),
    };
    let address: IpAddr = address.trim().parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let width = match width {
        Some(width) => u8::try_from(values::number(width.trim(), 0, most)?).ok()?,
        None => u8::try_from(most).ok()?,
    };
    Some(IpRange { address, width })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::model::{Finding, ObjectRef};

    fn read(entries: &[(&str, &str)]) -> (Option<Box<RedirectionFacts>>, Vec<Finding>) {
        let entries = entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let mut report = Report::new(ObjectRef::new("Pod", "shop", "web"), None);
        let facts = redirection(Some(&entries), &mut report);
        (facts, report.into_findings())
    }

    #[test]
    fn lists_hold_single_ones_and_ranges() {
        let (facts, findings) = read(&[
            (keys::REDIRECT_ALL, "false"),
            (keys::EXCLUDE_PORTS, " 3306, 8000-8010,,65535"),
            (keys::EXCLUDE_RANGES, "10.0.0.0/8,192.0.2.7, fd00::/16"),
        ]);
        assert_eq!(findings, []);
        let facts = facts.unwrap();
        assert_eq!(facts.redirect_all, Some(false));
        assert_eq!(facts.ports, [3306..=3306, 8000..=8010, 65535..=65535]);
        let texts: Vec<_> = facts.ranges.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["10.0.0.0/8", "192.0.2.7/32", "fd00::/16"]);
        assert_eq!(read(&[]).0, None);
        let (empty, findings) = read(&[(keys::EXCLUDE_PORTS, "")]);
        assert_eq!((empty, findings), (Some(Box::default()), vec![]));
    }

    #[test]
    fn a_wrong_value_costs_its_annotation_alone_and_is_reported() {
        for (key, value) in [
            (keys::REDIRECT_ALL, "yes"),
            (keys::REDIRECT_ALL, ""),
            (keys::EXCLUDE_PORTS, "80,http"),
            (keys::EXCLUDE_PORTS, "0"),
            (keys::EXCLUDE_PORTS, "65536"),
            (keys::EXCLUDE_PORTS, "90-80"),
            (keys::EXCLUDE_RANGES, "10.0.0.0/33"),
            (keys::EXCLUDE_RANGES, "fd00::/129"),
            (keys::EXCLUDE_RANGES, "10.0.0"),
        ] {
            let (facts, findings) = read(&[(key, value)]);
            assert_eq!(facts, Some(Box::default()), "{key}: {value}");
            let [finding] = findings.as_slice() else { panic!("{findings:?}") };
            assert!(finding.field.contains(key), "{finding}");
            assert!(finding.message.contains(&format!("{value:?}")), "{finding}");
        }
    }

    #[test]
    fn a_range_holds_by_its_leading_bits() {
        let holds = |range: &str, ip: &str| ip_range(range).unwrap().holds(ip.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.0.0.1", "10.0.0.1") && !holds("10.0.0.1", "10.0.0.0"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("::/0", "fd00::1") && !holds("::/0", "1.2.3.4"));
        assert!(holds("fd00::/127", "fd00::1") && !holds("fd00::/127", "fd00::2"));
    }
}

//! Spans of time as people write them.

use std::str::FromStr;
use std::time::Duration;

/// `90s`, `1m30s`, `2h`, `500ms`; a bare number is seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// The units with what one of them is in milliseconds, the long ones first.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("{text:?} is no span of time: write 90s, 1m30s, 2h, 500ms or 0");
        if text.starts_with('-') {
            return Err(format!("{text:?} is negative: write 0 or more, as in 90s"));
        }
        let mut rest = text;
        let mut millis: u64 = 0;
        if rest.is_empty() {
            return Err(form());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (number, after) = rest.split_at_checked(digits).ok_or_else(form)?;
            let number: u64 = number.parse().map_err(|_| form())?;
            let unit = UNITS.iter().find_map(|(word, of)| Some((after.strip_prefix(word)?, *of)));
            let (after, of) = match unit {
                Some(unit) => unit,
                // Only a number alone may stand without a unit.
                None if after.is_empty() && rest.len() == text.len() => ("", 1_000),
                None => return Err(form()),
            };
            let part = number.checked_mul(of).ok_or_else(form)?;
            millis = millis.checked_add(part).ok_or_else(form)?;
            rest = after;
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

/// A span alone, as the value of an option.
pub fn duration(text: &str) -> Result<Duration, String> {
    text.parse().map(|Span(duration)| duration)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn spans_are_read_as_they_are_written() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("60", 60_000),
            ("60s", 60_000),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("500ms", 500),
            ("1h1m1s1ms", 3_661_001),
        ] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(millis))), "{text}");
        }
        for wrong in [
            "",
            "s",
            "1x",
            "1.5s",
            "1m30",
            " 1s",
            "1 s",
            "+1s",
            "99999999999999999999s",
            "9999999999999999h",
        ] {
            assert!(wrong.parse::<Span>().unwrap_err().contains("90s"), "{wrong}");
        }
        for wrong in ["-1", "-1s", "-0s"] {
            assert!(wrong.parse::<Span>().unwrap_err().contains("negative"), "{wrong}");
        }
    }
}

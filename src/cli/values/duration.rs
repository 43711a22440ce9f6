//! Durations.

use std::time::Duration;

/// A duration: a number with ms, s, m or h, or 0.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits).unwrap_or_default();
    let millis = match unit {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "" if number == "0" => Some(0),
        _ => None,
    };
    let number = number.parse::<u32>().ok().map(u64::from);
    let (Some(number), Some(millis)) = (number, millis) else {
        return Err("no duration: write 500ms, 15s, 1m, 1h or 0".to_owned());
    };
    Ok(Duration::from_millis(number * millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        let table = [("500ms", 500), ("15s", 15_000), ("2m", 120_000), ("1h", 3_600_000), ("0", 0)];
        for (text, millis) in table {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["", "s", "15", "1.5s", "-1s", "15 s", "15S", "4294967296s", "1d", "é"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }
}

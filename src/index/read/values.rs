//! Values of labels and annotations.

use std::collections::BTreeMap;

/// The value of a label or annotation.
pub fn of<'a>(map: Option<&'a BTreeMap<String, String>>, key: &str) -> Option<&'a str> {
    map.and_then(|map| map.get(key)).map(String::as_str)
}

/// A number in decimal digits alone, within bounds.
pub fn number(text: &str, least: u32, most: u32) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse::<u32>().ok()).flatten()?;
    (least..=most).contains(&number).then_some(number)
}

/// A port, 1 to 65535.
pub fn port(text: &str) -> Option<u16> {
    number(text, 1, 65535).and_then(|number| u16::try_from(number).ok())
}

/// The path of an annotation, for findings.
pub fn annotation(key: &str) -> String {
    format!("metadata.annotations[{key}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_end_at_both_sides() {
        assert_eq!(port("1"), Some(1));
        assert_eq!(port("65535"), Some(65535));
        for wrong in ["0", "65536", "", "+80", "-1", " 80", "80 ", "8o", "4294967296", "1.0"] {
            assert_eq!(port(wrong), None, "{wrong:?}");
        }
    }
}

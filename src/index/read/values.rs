//! Values of labels and annotations.

use std::collections::BTreeMap;
use std::net::IpAddr;

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

/// Whether an address can be an endpoint's or a Service's, as the API server has it: no loopback,
/// which would be the proxy's own, no link-local, multicast or unspecified one.
pub fn usable(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some(),
    };
    !link_local && !address.is_loopback() && !address.is_multicast() && !address.is_unspecified()
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

//! Kubernetes' quantities, as far as the limits and requests of a container need them: which ones
//! are valid, and which of two is larger.
//!
//! From the documentation of `k8s.io/apimachinery/pkg/api/resource`: a decimal number and a suffix
//! out of n, u, m, k, M, G, T, P, E (powers of 1000), Ki to Ei (powers of 1024), or an exponent.

/// A quantity in billionths.
pub fn parse(text: &str) -> Option<u128> {
    const NANO: u128 = 1_000_000_000;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && part.is_empty()) || part.contains('.') || part.len() > 9 {
        return None;
    }
    // The number as a whole one of billionths: nine digits after the point.
    let digits = format!("{whole}{part:0<9}");
    let nanos: u128 = digits.parse().ok()?;
    let binary = |power: u32| 1_u128.checked_shl(10 * power);
    let decimal = |power: u32| 1000_u128.checked_pow(power);
    let factor = match suffix {
        "n" => return nanos.checked_div(NANO),
        "u" => return nanos.checked_div(NANO / 1000),
        "m" => return nanos.checked_div(1000),
        "" => Some(1),
        "k" => decimal(1),
        "M" => decimal(2),
        "G" => decimal(3),
        "T" => decimal(4),
        "P" => decimal(5),
        "E" => decimal(6),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let power: u32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            10_u128.checked_pow(power)
        }
    };
    nanos.checked_mul(factor?)
}

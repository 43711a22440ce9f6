//! Format strings of Envoy, as far as ours use them.

use envoy_types::pb::envoy::config::core::v3::SubstitutionFormatString;
use envoy_types::pb::envoy::config::core::v3::data_source::Specifier;
use envoy_types::pb::envoy::config::core::v3::substitution_format_string::Format;

/// The text of a format with these words put in for its commands; `None` where it is no text.
pub fn filled(format: &SubstitutionFormatString, words: &[(&str, &str)]) -> Option<String> {
    let text = match format.format.as_ref()? {
        Format::TextFormatSource(source) => match source.specifier.as_ref()? {
            Specifier::InlineString(text) => text,
            _ => return None,
        },
        _ => return None,
    };
    let mut filled = text.clone();
    for (command, word) in words {
        filled = filled.replace(command, word);
    }
    Some(filled)
}

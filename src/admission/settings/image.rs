//! The references of container images, as registries define them: `[host[:port]/]path[:tag][@digest]`.

/// What is wrong with a reference, if anything is.
pub fn problem(image: &str) -> Option<&'static str> {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    // A colon after the last slash begins a tag; one before it, a port.
    let (repository, tag) = match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (name, None),
    };
    let path = match repository.split_once('/') {
        Some((host, path)) if is_host(host) => path,
        _ => repository,
    };
    if image.is_empty() {
        Some("there is none: name the image that holds /identity-ready")
    } else if !path.split('/').all(is_component) {
        Some("its path is none: write parts of a-z, 0-9, '.', '_' and '-' with '/' between them")
    } else if tag.is_some_and(|tag| !is_tag(tag)) {
        Some("its tag is none: at most 128 letters, digits, '.', '_' and '-'")
    } else if digest.is_some_and(|digest| !is_digest(digest)) {
        Some("its digest is none: write sha256: and 64 hexadecimal digits")
    } else {
        None
    }
}

/// The first part is a host where it could not be a part of a path.
fn is_host(part: &str) -> bool {
    let (host, port) = part.rsplit_once(':').map_or((part, None), |(h, p)| (h, Some(p)));
    let looks_like_one =
        port.is_some() || host.contains('.') || host == "localhost" || host.starts_with('[');
    let inner = |c: char| c.is_ascii_alphanumeric() || "-.[]:".contains(c);
    looks_like_one
        && !host.is_empty()
        && host.chars().all(inner)
        && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_component(part: &str) -> bool {
    let end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(end)
        && part.ends_with(end)
        && part.chars().all(|c| end(c) || matches!(c, '.' | '_' | '-'))
}

fn is_tag(tag: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=128).contains(&tag.len()) && tag.chars().all(inner) && !tag.starts_with(['.', '-'])
}

fn is_digest(digest: &str) -> bool {
    let hex = digest.strip_prefix("sha256:");
    hex.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

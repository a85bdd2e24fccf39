//! References to container images, as far as their default pull policy needs them.

/// The pull policy of an image that says none: `latest` may be another image tomorrow.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if tag(image) == Some("latest") {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// The tag of an image; `latest` where neither tag nor digest is given, none where the reference
/// makes no sense.
fn tag(image: &str) -> Option<&str> {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let (repository, tag) = match name[last..].split_once(':') {
        Some((_, tag)) => (&name[..name.len() - tag.len() - 1], Some(tag)),
        None => (name, None),
    };
    if !is_repository(repository) || tag.is_some_and(|tag| !is_tag(tag)) {
        return None;
    }
    match (tag, digest) {
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

fn is_repository(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((first, rest)) if is_domain(first) => rest,
        _ => name,
    };
    path.split('/').all(is_component)
}

/// The first part names a registry if it could not be part of a path.
fn is_domain(first: &str) -> bool {
    let looks = first == "localhost"
        || first.contains(['.', ':'])
        || first.chars().any(|letter| letter.is_ascii_uppercase());
    let valid = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | ':');
    looks && first.chars().all(valid)
}

fn is_component(component: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let valid = |byte: u8| letter(byte) || matches!(byte, b'.' | b'_' | b'-');
    component.bytes().all(valid)
        && component.bytes().next().is_some_and(letter)
        && component.bytes().next_back().is_some_and(letter)
        && !component.contains("..")
}

fn is_tag(tag: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let valid = |byte: u8| letter(byte) || matches!(byte, b'.' | b'-');
    tag.bytes().next().is_some_and(letter) && tag.bytes().all(valid) && tag.len() <= 128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_latest_is_always_pulled() {
        let cases = [
            ("web", "Always"),
            ("web:latest", "Always"),
            ("web:1", "IfNotPresent"),
            ("registry:5000/web", "Always"),
            ("registry:5000/web:1.2", "IfNotPresent"),
            ("web@sha256:0123", "IfNotPresent"),
            ("web:latest@sha256:0123", "Always"),
            ("Web", "IfNotPresent"),
            ("Registry.example/web", "Always"),
            ("", "IfNotPresent"),
            ("a b", "IfNotPresent"),
        ];
        for (image, expected) in cases {
            assert_eq!(pull_policy(image), expected, "{image}");
        }
    }
}

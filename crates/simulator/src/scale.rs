//! Numbers that are given as such or in percent.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// How a part of a pod is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Up,
    Down,
}

/// A number, or a percentage of a total. What cannot be read counts as nothing; the server lets no
/// such thing in.
pub(crate) fn resolve(value: Option<&IntOrString>, total: i32, round: Round) -> i32 {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(text)) => {
            let percent = text
                .strip_suffix('%')
                .and_then(|text| text.parse::<i64>().ok());
            let product = percent.unwrap_or(0).saturating_mul(i64::from(total));
            let rounded = match round {
                Round::Up => product.saturating_add(99).div_euclid(100),
                Round::Down => product.div_euclid(100),
            };
            i32::try_from(rounded).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_as_asked() {
        let percent = IntOrString::String("25%".to_owned());
        assert_eq!(resolve(Some(&percent), 10, Round::Up), 3);
        assert_eq!(resolve(Some(&percent), 10, Round::Down), 2);
        assert_eq!(resolve(Some(&IntOrString::Int(4)), 10, Round::Up), 4);
        assert_eq!(resolve(None, 10, Round::Up), 0);
        let nonsense = IntOrString::String("many".to_owned());
        assert_eq!(resolve(Some(&nonsense), 10, Round::Up), 0);
    }
}

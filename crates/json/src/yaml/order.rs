//! The order in which Go's YAML writer puts keys: letters after everything else, and runs of
//! digits by their value, so that `item2` comes before `item10`.

/// Sorts keys as the peer does. The peer's comparison is not transitive (`a9` < `a10` < `a1b` <
/// `a9`), which the standard sort may answer with a panic, so this is a plain merge sort: right
/// whenever the comparison is consistent, and deterministic when it is not.
pub(super) fn sort_keys<'a>(keys: &mut Vec<(&'a str, Vec<char>)>) {
    if keys.is_sorted_by(|a, b| !less(&b.1, &a.1)) {
        return;
    }
    let mut width = 1;
    let mut from = std::mem::take(keys);
    while width < from.len() {
        let mut merged: Vec<(&'a str, Vec<char>)> = Vec::with_capacity(from.len());
        let mut rest = from.into_iter().peekable();
        while rest.peek().is_some() {
            let left: Vec<_> = rest.by_ref().take(width).collect();
            let right: Vec<_> = rest.by_ref().take(width).collect();
            merge(left, right, &mut merged);
        }
        from = merged;
        width *= 2;
    }
    *keys = from;
}

fn merge<'a>(
    left: Vec<(&'a str, Vec<char>)>,
    right: Vec<(&'a str, Vec<char>)>,
    merged: &mut Vec<(&'a str, Vec<char>)>,
) {
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if less(&b.1, &a.1) => right.next(),
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        };
        match next {
            Some(key) => merged.push(key),
            None => return,
        }
    }
}

/// Whether `a` stands before `b`; go.yaml.in/yaml/v2: sorter.go, with numbers that saturate
/// instead of wrapping around.
fn less(a: &[char], b: &[char]) -> bool {
    let Some(start) = a.iter().zip(b).position(|(a, b)| a != b) else {
        return a.len() < b.len();
    };
    let (first, second) = (a[start], b[start]);
    match (first.is_alphabetic(), second.is_alphabetic()) {
        (true, true) => return first < second,
        (false, false) => {}
        (_, second_is_letter) => return second_is_letter,
    }
    // A zero further right in a number counts; a leading one does not.
    let inside_number = (first == '0' || second == '0')
        && a[..start]
            .iter()
            .rev()
            .take_while(|c| c.is_ascii_digit())
            .any(|c| *c != '0');
    let run = |text: &[char]| {
        let digits = text[start..].iter().map_while(|c| c.to_digit(10));
        digits.fold((u64::from(inside_number), 0), |(number, length), digit| {
            (
                number.saturating_mul(10).saturating_add(u64::from(digit)),
                length + 1,
            )
        })
    };
    (run(a), first) < (run(b), second)
}

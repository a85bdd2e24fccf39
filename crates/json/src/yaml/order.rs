//! The order in which Go's YAML writer puts keys: letters after everything else, and runs of
//! digits by their value, so that `item2` comes before `item10`.

/// Sorts keys as the peer does. The peer's comparison is not transitive (`a9` < `a10` < `a1b` <
/// `a9`), which the standard sort may answer with a panic, so this is a plain merge sort: right
/// whenever the comparison is consistent, and deterministic when it is not.
pub(super) fn sort_keys(keys: &mut Vec<&str>) {
    // Maps come in byte order, which is mostly right already.
    if keys.is_sorted_by(|a, b| !less(b, a)) {
        return;
    }
    let mut width = 1;
    while width < keys.len() {
        let mut merged = Vec::with_capacity(keys.len());
        for pair in keys.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut merged);
        }
        *keys = merged;
        width *= 2;
    }
}

fn merge<'a>(left: &[&'a str], right: &[&'a str], merged: &mut Vec<&'a str>) {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if less(b, a) => right.next(),
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        };
        match next {
            Some(key) => merged.push(*key),
            None => return,
        }
    }
}

/// Whether `a` stands before `b`; go.yaml.in/yaml/v2: sorter.go, with numbers that saturate
/// instead of wrapping around.
fn less(a: &str, b: &str) -> bool {
    let difference = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b);
    let Some(((start, first), second)) = difference else {
        return a.len() < b.len();
    };
    match (first.is_alphabetic(), second.is_alphabetic()) {
        (true, true) => return first < second,
        (false, false) => {}
        (_, second_is_letter) => return second_is_letter,
    }
    // A zero further right in a number counts; a leading one does not.
    let digits_before = a[..start].bytes().rev().take_while(u8::is_ascii_digit);
    let inside_number =
        (first == '0' || second == '0') && digits_before.into_iter().any(|digit| digit != b'0');
    let run = |text: &str| {
        let digits = text[start..].chars().map_while(|c| c.to_digit(10));
        digits.fold((u64::from(inside_number), 0), |(number, length), digit| {
            (
                number.saturating_mul(10).saturating_add(u64::from(digit)),
                length + 1,
            )
        })
    };
    (run(a), first) < (run(b), second)
}

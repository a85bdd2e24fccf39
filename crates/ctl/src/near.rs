//! Names that somebody may have meant.

/// The candidate that is most like a word, if one is like it.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    // A letter in three may be wrong.
    let tolerated = (lower.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= tolerated)
        .min()
        .map(|(_, candidate)| candidate)
}

/// What to add to a message about an unknown word: nothing if no candidate is like it.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        Some(candidate) => format!("; did you mean {candidate}?"),
        None => String::new(),
    }
}

/// The same, or what to do where no candidate is like the word.
pub fn did_you_mean_or<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    hint: &str,
) -> String {
    match did_you_mean(word, candidates) {
        nothing if nothing.is_empty() => hint.to_owned(),
        guess => guess,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_like_a_word_is_suggested() {
        let candidates = ["placement", "replica-set", "cluster-set"];
        for (word, expected) in [
            ("placment", "; did you mean placement?"),
            ("Placements", "; did you mean placement?"),
            ("replicaset", "; did you mean replica-set?"),
            ("nothing", ""),
            ("x", ""),
        ] {
            assert_eq!(did_you_mean(word, candidates), expected, "{word}");
        }
        assert_eq!(
            nearest("clster2", ["cluster1", "cluster2"]),
            Some("cluster2")
        );
    }
}

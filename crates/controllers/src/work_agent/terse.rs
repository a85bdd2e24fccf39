//! Texts that are like others, kept as what is different about them. Works, their records and what
//! they apply are mostly the same but for names and times.

use std::sync::Arc;

use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use parking_lot::Mutex;

/// A longer text is no model: one would stay in memory for nothing when the others are gone.
const LONGEST_MODEL: usize = 32 * 1024;

/// A text, as the difference to one that is like it.
#[derive(Debug)]
pub(super) struct Terse {
    model: Arc<[u8]>,
    /// How the text differs from the model; nothing if it is the model.
    difference: Option<Difference>,
}

#[derive(Debug)]
struct Difference {
    compressed: Box<[u8]>,
    /// Of the text.
    length: u32,
}

/// Where texts meet that may be alike: the last one that was not like those before.
#[derive(Debug, Default)]
pub(super) struct Likeness {
    model: Mutex<Option<Arc<[u8]>>>,
}

impl Likeness {
    /// Nothing has been seen yet.
    pub(super) const fn new() -> Self {
        Self {
            model: Mutex::new(None),
        }
    }

    fn model(&self) -> Option<Arc<[u8]>> {
        self.model.lock().clone()
    }
}

impl Terse {
    /// Keeps a text, if possible by what tells it from those that met here before.
    pub(super) fn new(text: &str, likeness: &Likeness) -> Self {
        let text = text.as_bytes();
        let like = likeness.model().and_then(|model| like(text, model));
        like.unwrap_or_else(|| {
            let model: Arc<[u8]> = text.into();
            if text.len() <= LONGEST_MODEL {
                *likeness.model.lock() = Some(Arc::clone(&model));
            }
            Self {
                model,
                difference: None,
            }
        })
    }

    /// The whole text. What was kept can be had back.
    pub(super) fn text(&self) -> Option<String> {
        let text = match &self.difference {
            None => self.model.to_vec(),
            Some(Difference { compressed, length }) => {
                decompress_with_dict(compressed, *length as usize, &self.model).ok()?
            }
        };
        String::from_utf8(text).ok()
    }
}

/// The text by its difference to a model, if that is less than half of it.
fn like(text: &[u8], model: Arc<[u8]>) -> Option<Terse> {
    let length = u32::try_from(text.len()).ok()?;
    let compressed = compress_with_dict(text, &model);
    (compressed.len() < text.len() / 2).then(|| Terse {
        model,
        difference: Some(Difference {
            compressed: compressed.into(),
            length,
        }),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config_map(number: usize) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"settings-{number}","namespace":"default"}},"data":{{"a":"{number}"}}}}"#
        )
    }

    /// How many bytes a text takes besides its model.
    fn own(terse: &Terse) -> usize {
        terse
            .difference
            .as_ref()
            .map_or(terse.model.len(), |difference| difference.compressed.len())
    }

    #[test]
    fn texts_that_are_alike_take_little() {
        let likeness = Likeness::new();
        let first = Terse::new(&config_map(1), &likeness);
        assert_eq!(own(&first), config_map(1).len(), "the first is kept whole");
        for number in 2..100 {
            let text = config_map(number);
            let terse = Terse::new(&text, &likeness);
            assert_eq!(terse.text(), Some(text));
            assert!(own(&terse) < 40, "{number} takes {} bytes", own(&terse));
        }
    }

    #[test]
    fn another_form_becomes_the_model() {
        let likeness = Likeness::new();
        let forms = [config_map, |number| {
            format!(
                r#"{{"status":{{"conditions":[{{"type":"Applied","observedGeneration":{number}}}]}}}}"#
            )
        }];
        for form in forms {
            Terse::new(&form(1), &likeness);
            let next = Terse::new(&form(2), &likeness);
            assert!(next.difference.is_some());
            assert_eq!(next.text(), Some(form(2)));
        }
    }

    #[test]
    fn a_long_text_is_no_model() {
        let likeness = Likeness::new();
        let long = "0123456789".repeat(LONGEST_MODEL);
        assert_eq!(Terse::new(&long, &likeness).text(), Some(long));
        assert!(likeness.model().is_none());
    }

    proptest! {
        #[test]
        fn every_text_comes_back(texts in proptest::collection::vec("[a-c\\PC]{0,300}", 1..8)) {
            let likeness = Likeness::new();
            for text in texts {
                prop_assert_eq!(Terse::new(&text, &likeness).text(), Some(text));
            }
        }
    }
}

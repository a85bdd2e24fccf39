//! The errors of one validation, of which only the first are kept.

use crate::field::FieldError;

/// The most errors that are kept, and reported, about one object. A request of a few megabytes can
/// be wrong in millions of places.
pub const MAX_FIELD_ERRORS: usize = 100;

/// Errors in the order in which they were found.
#[derive(Debug, Default)]
pub struct FieldErrors {
    kept: Vec<FieldError>,
    left_out: usize,
}

impl FieldErrors {
    /// No errors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an error, or only counts it if there are too many.
    pub fn push(&mut self, error: FieldError) {
        if self.kept.len() < MAX_FIELD_ERRORS {
            self.kept.push(error);
        } else {
            self.left_out += error.count();
        }
    }

    /// Adds an error that costs much to describe; it is not described if it is only counted.
    pub fn push_with(&mut self, error: impl FnOnce() -> FieldError) {
        if self.kept.len() < MAX_FIELD_ERRORS {
            self.kept.push(error());
        } else {
            self.left_out += 1;
        }
    }

    /// How many errors there are, kept or not.
    pub fn len(&self) -> usize {
        self.kept.len() + self.left_out
    }

    /// True if nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The errors that are kept.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.kept.iter()
    }

    /// The errors that are kept, and one that says how many are not.
    pub fn into_vec(self) -> Vec<FieldError> {
        let mut errors = self.kept;
        if self.left_out > 0 {
            errors.push(FieldError::left_out(self.left_out));
        }
        errors
    }
}

impl<'a> IntoIterator for &'a FieldErrors {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        for error in errors {
            self.push(error);
        }
    }
}

/// Reduces errors to the first [`MAX_FIELD_ERRORS`] and one that says how many there are besides.
pub fn cap(errors: Vec<FieldError>) -> Vec<FieldError> {
    let mut capped = FieldErrors::new();
    let mut left_out = 0;
    for error in errors {
        if error.is_left_out() {
            left_out += error.count();
        } else {
            capped.push(error);
        }
    }
    capped.left_out += left_out;
    capped.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldPath;

    #[test]
    fn the_first_errors_are_kept_and_the_others_counted() {
        let path = FieldPath::new("list");
        let mut errors = FieldErrors::new();
        errors.extend((0..1_000).map(|index| FieldError::required(&path.index(index), "")));
        assert_eq!((errors.len(), errors.is_empty()), (1_000, false));
        let errors = errors.into_vec();
        assert_eq!(errors.len(), MAX_FIELD_ERRORS + 1);
        assert_eq!(errors[99].to_string(), "list[99]: Required value");
        assert_eq!(errors[100].to_string(), "900 more errors are not shown");
        let twice = cap(errors.iter().chain(&errors).cloned().collect());
        assert_eq!(twice.len(), MAX_FIELD_ERRORS + 1);
        assert_eq!(twice[100].to_string(), "1900 more errors are not shown");
    }
}

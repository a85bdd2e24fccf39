//! Merging of a template into a live value: the template wins, what is live besides stays.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::CompareError;
use super::equality::{Equality, Place, canonical};
use crate::fields::MAX_DEPTH;

/// How many pairs of list items are compared before a comparison is given up.
const MAX_PAIRS: usize = 1_000_000;

/// A merge, and what was noticed on the way.
#[derive(Default)]
pub(super) struct Merge {
    /// Whether the template has a field that the live value lacks.
    pub(super) has_missing_field: bool,
    pairs: usize,
}

impl Merge {
    /// Merges the value of a top-level key. There, a map or list has to meet its like.
    pub(super) fn top_level(
        &mut self,
        key: &str,
        template: &Value,
        live: &Value,
    ) -> Result<Value, CompareError> {
        let is_mismatch = match template {
            Value::Object(_) => !live.is_object() && !live.is_null(),
            Value::Array(_) => !live.is_array() && !live.is_null(),
            _ => false,
        };
        if is_mismatch {
            return Err(CompareError::Types(key.to_owned()));
        }
        self.merge(template, live, 0)
    }

    fn merge(
        &mut self,
        template: &Value,
        live: &Value,
        depth: usize,
    ) -> Result<Value, CompareError> {
        if depth > MAX_DEPTH {
            return Ok(template.clone());
        }
        match (template, live) {
            (Value::Object(template), Value::Object(live)) => {
                self.maps(template, live, depth).map(Value::Object)
            }
            (Value::Null, Value::Object(_)) => Ok(live.clone()),
            (Value::Array(template), Value::Array(live)) => {
                self.lists(template, live, depth).map(Value::Array)
            }
            _ => Ok(template.clone()),
        }
    }

    fn maps(
        &mut self,
        template: &Map<String, Value>,
        live: &Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, CompareError> {
        let mut merged = live.clone();
        for (key, wanted) in template {
            let value = if let Some(live) = live.get(key) {
                self.merge(wanted, live, depth + 1)?
            } else {
                self.has_missing_field = true;
                wanted.clone()
            };
            merged.insert(key.clone(), value);
        }
        Ok(merged)
    }

    /// Items of the template come first, in their order, each merged with the live item that it means;
    /// other live items follow.
    fn lists(
        &mut self,
        template: &[Value],
        live: &[Value],
        depth: usize,
    ) -> Result<Vec<Value>, CompareError> {
        let mut merged = template.to_vec();
        let mut is_used = vec![false; template.len()];
        let mut extra = Vec::new();
        for (item, count) in distinct(live) {
            let mut left = count;
            for index in 0..template.len() {
                if left == 0 {
                    break;
                }
                if is_used[index] {
                    continue;
                }
                self.pairs += 1;
                if self.pairs > MAX_PAIRS {
                    return Err(CompareError::TooLong);
                }
                if let Some(candidate) = self.candidate(&template[index], item, depth)? {
                    merged[index] = candidate;
                    is_used[index] = true;
                    left -= 1;
                }
            }
            extra.extend(std::iter::repeat_n(item.clone(), left));
        }
        merged.extend(extra);
        Ok(merged)
    }

    /// What an item of the template becomes if it means this live item.
    fn candidate(
        &mut self,
        template: &Value,
        live: &Value,
        depth: usize,
    ) -> Result<Option<Value>, CompareError> {
        if !template.is_object() || !live.is_object() {
            let is_match = Equality::default().holds(template, Some(live), Place::Item);
            return Ok(is_match.then(|| template.clone()));
        }
        let name = template["name"].as_str().filter(|name| !name.is_empty());
        let is_same_named = name.is_some() && live["name"].as_str() == name;
        // What is missing in an item that is not meant says nothing.
        let missing = self.has_missing_field;
        let candidate = self.merge(template, live, depth + 1)?;
        let is_match =
            is_same_named || Equality::default().holds(&candidate, Some(live), Place::Item);
        if !is_match {
            self.has_missing_field = missing;
        }
        Ok(is_match.then_some(candidate))
    }
}

/// The items of a list without repetitions, in order, and how often each is there.
fn distinct(items: &[Value]) -> Vec<(&Value, usize)> {
    let mut found: Vec<(&Value, usize)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for item in items {
        let place = *places.entry(canonical(item)).or_insert(found.len());
        match found.get_mut(place) {
            Some((_, count)) => *count += 1,
            None => found.push((item, 1)),
        }
    }
    found
}

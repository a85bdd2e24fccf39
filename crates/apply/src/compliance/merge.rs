//! Merges what a template defines into the live value.
//!
//! Where the result means the same as the live value, the object is as defined. Otherwise the result
//! is what the object is updated to.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value};

use super::equivalent::{equivalent, sprint};

/// How a template is merged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merge {
    /// Nothing but what is defined is kept.
    pub(super) is_only: bool,
    /// An empty map counts as an absent one.
    pub(super) zero_is_absent: bool,
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Merged {
    /// The value.
    pub(super) value: Value,
    /// Whether the template has a key that the live value lacks.
    pub(super) is_missing: bool,
}

impl Merged {
    fn of(value: Value) -> Self {
        Self {
            value,
            is_missing: false,
        }
    }
}

impl Merge {
    /// Merges maps.
    pub(super) fn maps(self, template: &Map<String, Value>, live: &Map<String, Value>) -> Merged {
        if self.is_only {
            return Merged::of(Value::Object(template.clone()));
        }
        let mut merged = template.clone();
        let mut is_missing = false;
        for (key, live) in live {
            let value = match merged.get(key) {
                None => live.clone(),
                Some(template) => {
                    let found = self.values(template, live);
                    is_missing |= found.is_missing;
                    found.value
                }
            };
            merged.insert(key.clone(), value);
        }
        is_missing |= merged.len() > live.len();
        Merged {
            value: Value::Object(merged),
            is_missing,
        }
    }

    fn values(self, template: &Value, live: &Value) -> Merged {
        match (template, live) {
            (Value::Object(template), Value::Object(live)) => self.maps(template, live),
            (Value::Array(template), Value::Array(live)) if !live.is_empty() => {
                self.lists(template, live)
            }
            // A template that says null does not care about what is in a map.
            (Value::Null, Value::Object(_)) => Merged::of(live.clone()),
            (template, _) => Merged::of(template.clone()),
        }
    }

    /// Merges lists: items of the template first, then live items that are none of them. Maps with the
    /// same name are one item.
    pub(super) fn lists(self, template: &[Value], live: &[Value]) -> Merged {
        if self.is_only {
            return Merged::of(Value::Array(template.to_vec()));
        }
        let mut merged = template.to_vec();
        let mut is_taken = vec![false; template.len()];
        let mut is_missing = false;
        for (item, count) in counted(live) {
            let mut matched = 0;
            for (index, slot) in template.iter().enumerate() {
                if is_taken[index] {
                    continue;
                }
                let candidate = self.item(slot, item, &mut is_missing);
                if let Some(candidate) = candidate {
                    merged[index] = candidate;
                    is_taken[index] = true;
                    matched += 1;
                }
                if matched == count {
                    break;
                }
            }
            let rest = std::iter::repeat_n(item, count - matched);
            merged.extend(rest.cloned());
        }
        Merged {
            value: Value::Array(merged),
            is_missing,
        }
    }

    /// What an item of the template becomes if it is this live item.
    fn item(self, template: &Value, live: &Value, is_missing: &mut bool) -> Option<Value> {
        let (candidate, is_same_name) = match (template, live) {
            (Value::Object(template), Value::Object(live)) => {
                let found = self.maps(template, live);
                // Of several items the last one decides, as upstream has it.
                *is_missing = found.is_missing;
                (found.value, is_same_name(template, live))
            }
            _ => (template.clone(), false),
        };
        let found = equivalent(&candidate, live, self.zero_is_absent);
        *is_missing |= found.is_missing;
        (is_same_name || found.is_equal).then_some(candidate)
    }
}

fn is_same_name(template: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    let name = live.get("name").and_then(Value::as_str);
    name.is_some_and(|name| {
        !name.is_empty() && template.get("name").and_then(Value::as_str) == Some(name)
    })
}

/// The different items of a list in their order, and how often each occurs.
fn counted(items: &[Value]) -> Vec<(&Value, usize)> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut counted: Vec<(&Value, usize)> = Vec::new();
    for item in items {
        match places.entry(sprint(item)) {
            Entry::Occupied(place) => counted[*place.get()].1 += 1,
            Entry::Vacant(place) => {
                place.insert(counted.len());
                counted.push((item, 1));
            }
        }
    }
    counted
}

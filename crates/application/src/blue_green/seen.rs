//! Objects on the cluster, as far as they were read. What is asked for and was not read is noted.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;

/// Objects that were read.
#[derive(Debug, Default)]
pub struct Seen {
    objects: HashMap<String, Option<Value>>,
    missing: RefCell<Vec<Value>>,
}

impl Seen {
    /// Takes in what is there in the place of an object.
    pub fn insert(&mut self, object: &Value, live: Option<Value>) {
        self.objects.insert(identity(object), live);
    }

    /// Finds an object by kind, namespace and name.
    pub fn find(&self, object: &Value) -> Option<&Value> {
        let known = self.objects.get(&identity(object));
        if known.is_none() {
            self.missing.borrow_mut().push(object.clone());
        }
        known?.as_ref()
    }

    /// What was asked for and was not read.
    pub fn take_missing(&self) -> Vec<Value> {
        self.missing.take()
    }
}

fn identity(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    [
        &object["apiVersion"],
        &object["kind"],
        &metadata["namespace"],
        &metadata["name"],
    ]
    .map(text)
    .join(" ")
}

//! Taking the fields of a set out of a value, or keeping only them.

use serde_json::{Map, Value};

use super::{Items, Shape, Type};
use crate::fieldset::FieldSet;
use crate::path::PathElement;

/// Removes the fields and items of a set. A container that loses all it had becomes null, as in
/// structured-merge-diff, because null and empty count differently in a field set;
/// [`settle_emptied`] decides what becomes of it.
pub(crate) fn remove(kind: Type, value: Value, set: &FieldSet) -> Value {
    match (kind.shape(Some(&value)), value) {
        (Shape::Map, Value::Object(members)) if !kind.is_atomic_map() => {
            let mut kept = Map::new();
            for (name, member) in members {
                let member = match set.get(&PathElement::field(name.as_str())) {
                    Some((true, _)) => continue,
                    Some((false, below)) => remove(kind.field(&name).kind, member, below),
                    None => member,
                };
                kept.insert(name, member);
            }
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        (Shape::List, Value::Array(items)) if !matches!(kind.items(), Items::Atomic) => {
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                let found = kind
                    .element(&item)
                    .ok()
                    .and_then(|element| set.get(&element));
                match found {
                    Some((true, _)) => {}
                    Some((false, below)) => kept.push(remove(kind.item(), item, below)),
                    None => kept.push(item),
                }
            }
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
        (Shape::Scalar, value) => value,
        _ => Value::Null,
    }
}

/// Replaces the nulls that [`remove`] left for this set: a container that someone owns is empty, any
/// other is gone.
///
/// Kubernetes leaves them null, which its decoder drops for built-in kinds, but which makes custom
/// resources fail their validation.
pub(crate) fn settle_emptied(kind: Type, value: &mut Value, set: &FieldSet, owned: &FieldSet) {
    let nothing = FieldSet::new();
    match value {
        Value::Object(members) => {
            for (element, _, below) in set.iter().filter(|(_, member, _)| !member) {
                let PathElement::Field(name) = element else {
                    continue;
                };
                let Some(member) = members.get_mut(&**name) else {
                    continue;
                };
                let field = kind.field(name).kind;
                let (is_owned, owned) = owned.get(element).unwrap_or((false, &nothing));
                if !member.is_null() {
                    settle_emptied(field, member, below, owned);
                } else if !is_owned {
                    members.remove(&**name);
                } else if field.shape(None) == Shape::List {
                    *member = Value::Array(Vec::new());
                } else {
                    *member = Value::Object(Map::new());
                }
            }
        }
        Value::Array(items) => {
            // An item without its key is nothing.
            items.retain(|item| !item.is_null());
            for item in items {
                let Ok(element) = kind.element(item) else {
                    continue;
                };
                if let Some((_, below)) = set.get(&element) {
                    let owned = owned.get(&element).map_or(&nothing, |(_, owned)| owned);
                    settle_emptied(kind.item(), item, below, owned);
                }
            }
        }
        _ => {}
    }
}

/// Keeps only the fields and items of a set, and the keys of list items that are kept in part.
pub(crate) fn extract(kind: Type, value: &Value, set: &FieldSet) -> Option<Value> {
    match (kind.shape(Some(value)), value) {
        (Shape::Map, Value::Object(members)) if !kind.is_atomic_map() => {
            let mut kept = Map::new();
            for (name, member) in members {
                let Some((is_member, below)) = set.get(&PathElement::field(name.as_str())) else {
                    continue;
                };
                let field = kind.field(name).kind;
                if let Some(member) = extract_member(field, member, is_member, below) {
                    kept.insert(name.clone(), member);
                }
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        (Shape::List, Value::Array(items)) if !matches!(kind.items(), Items::Atomic) => {
            let mut kept = Vec::new();
            for item in items {
                let Ok(element) = kind.element(item) else {
                    continue;
                };
                let Some((is_member, below)) = set.get(&element) else {
                    continue;
                };
                let Some(mut part) = extract_member(kind.item(), item, is_member, below) else {
                    continue;
                };
                if let (Value::Object(part), Items::Keyed(keys)) = (&mut part, kind.items()) {
                    for key in keys {
                        if let Some(value) = item.get(key) {
                            part.insert(key.clone(), value.clone());
                        }
                    }
                }
                kept.push(part);
            }
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => None,
    }
}

fn extract_member(kind: Type, value: &Value, member: bool, below: &FieldSet) -> Option<Value> {
    let granular = match kind.shape(Some(value)) {
        Shape::Map => !kind.is_atomic_map(),
        Shape::List => !matches!(kind.items(), Items::Atomic),
        Shape::Scalar => false,
    };
    if !granular {
        return member.then(|| value.clone());
    }
    extract(kind, value, below).or_else(|| {
        member.then(|| match value {
            Value::Array(_) => Value::Array(Vec::new()),
            Value::Object(_) => Value::Object(Map::new()),
            other => other.clone(),
        })
    })
}

//! Reading of a stored text what a patch touches, and writing the text with what became of it.
//!
//! Most of a large object are the items of its lists. A patch that names a few of them by their numbers is applied to
//! an excerpt, in which the lists have only these items. The text between them is neither parsed nor written again: it
//! is copied.

use std::collections::BTreeMap;
use std::ops::Range;

use bellwether_patch::json_patch::Place;
use bellwether_schema::{ListType, Schema};
use serde_json::{Map, Value};

use super::scan::{end_of_string, end_of_value};

/// A part of an object that has all of its fields, but only some items of some lists.
#[derive(Debug)]
pub(crate) struct Excerpt {
    /// The part, without the type of the object.
    pub(crate) value: Value,
    /// What was left out.
    cut: Cut,
}

/// What was left out of a value.
#[derive(Debug, Default)]
struct Cut {
    /// Of a list: its text before, between and behind the items that are left.
    gaps: Vec<Range<usize>>,
    /// Of a list: the items that are left, with the numbers that they had.
    items: Vec<(usize, Cut)>,
    /// Of an object: what was left out of its members, if something was.
    members: BTreeMap<String, Cut>,
}

impl Cut {
    fn is_empty(&self) -> bool {
        self.gaps.is_empty() && self.members.is_empty()
    }
}

/// What operations name of a value.
#[derive(Debug, Default)]
struct Touched {
    /// Members or items, by names or numbers.
    below: BTreeMap<String, Touched>,
    /// True if the whole value is named.
    is_target: bool,
    /// True if something may be added or removed directly below.
    is_resized: bool,
}

impl Touched {
    fn by(places: &[Place]) -> Self {
        let mut root = Self::default();
        for place in places {
            let mut touched = &mut root;
            for (index, segment) in place.segments.iter().enumerate() {
                let is_last = index + 1 == place.segments.len();
                touched.is_resized |= is_last && place.adds_or_removes;
                touched = touched.below.entry(segment.clone()).or_default();
            }
            touched.is_target = true;
        }
        root
    }

    /// The numbers of the items that are named; nothing if a name is not plainly a number.
    fn indexes(&self) -> Option<BTreeMap<usize, &Touched>> {
        let number = |name: &str| {
            let number: usize = name.parse().ok()?;
            (number.to_string() == name).then_some(number)
        };
        let below = self.below.iter();
        below
            .map(|(name, touched)| Some((number(name)?, touched)))
            .collect()
    }
}

impl Excerpt {
    /// The part of a text that operations at these places need. Nothing if that would be the whole, or if the
    /// operations do not fit the text.
    ///
    /// Items are left out only where `schema` says nothing about an object that depends on them: of atomic lists, in
    /// places without rules and alternatives.
    pub(crate) fn read(text: &[u8], schema: &Schema, places: &[Place]) -> Option<Self> {
        let mut reader = Reader { text, position: 0 };
        let (value, cut) = reader.value(&Touched::by(places), Some(schema))?;
        (!cut.is_empty()).then_some(Self { value, cut })
    }

    /// Where in the excerpt these places are.
    pub(crate) fn places(&self, places: &[Place]) -> Option<Vec<Place>> {
        let moved = places.iter().map(|place| {
            let mut cut = Some(&self.cut);
            let mut moved = place.clone();
            for segment in &mut moved.segments {
                cut = match cut {
                    Some(list) if !list.gaps.is_empty() => {
                        let number: usize = segment.parse().ok()?;
                        let mut items = list.items.iter();
                        let index = items.position(|(known, _)| *known == number)?;
                        *segment = index.to_string();
                        Some(&list.items[index].1)
                    }
                    Some(object) => object.members.get(segment.as_str()),
                    None => None,
                };
            }
            Some(moved)
        });
        moved.collect()
    }

    /// Appends what a member of the object has become, with what was left out of it in `text`; false if it has
    /// another form than the excerpt.
    pub(super) fn write_member(
        &self,
        name: &str,
        value: &Value,
        text: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        write_part(self.cut.members.get(name), value, text, out)
    }

    /// True if an object has every member that something was left out of.
    pub(super) fn has_members(&self, object: &Map<String, Value>) -> bool {
        self.cut.members.keys().all(|it| object.contains_key(it))
    }
}

fn write_part(cut: Option<&Cut>, value: &Value, text: &[u8], out: &mut Vec<u8>) -> bool {
    if let Some(cut) = cut {
        return write(cut, value, text, out);
    }
    write_whole(value, out);
    true
}

fn write(cut: &Cut, value: &Value, text: &[u8], out: &mut Vec<u8>) -> bool {
    match value {
        Value::Array(items) if !cut.gaps.is_empty() => {
            if items.len() != cut.items.len() {
                return false;
            }
            out.push(b'[');
            let mut gaps = cut.gaps.iter();
            let mut copy_gap = |out: &mut Vec<u8>| {
                let gap = gaps.next().and_then(|gap| text.get(gap.clone()));
                out.extend_from_slice(gap.unwrap_or_default());
                gap.is_some()
            };
            for (item, (_, cut)) in items.iter().zip(&cut.items) {
                if !copy_gap(out) || !write(cut, item, text, out) {
                    return false;
                }
            }
            let is_complete = copy_gap(out);
            out.push(b']');
            is_complete
        }
        Value::Object(members) if cut.gaps.is_empty() && !cut.members.is_empty() => {
            if !cut.members.keys().all(|it| members.contains_key(it)) {
                return false;
            }
            out.push(b'{');
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_whole(name, out);
                out.push(b':');
                let is_written = write_part(cut.members.get(name), member, text, out);
                if !is_written {
                    return false;
                }
            }
            out.push(b'}');
            true
        }
        whole => {
            write_whole(whole, out);
            cut.is_empty()
        }
    }
}

fn write_whole<T: serde::Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    // Writing a JSON value with string keys into memory has no way to fail.
    let _ = serde_json::to_writer(out, value);
}

/// Reads a text that is our own: valid, and without spaces. What is nested too deep for a body was never stored.
struct Reader<'a> {
    text: &'a [u8],
    position: usize,
}

impl Reader<'_> {
    /// Reads a value; without a schema, all of it.
    fn value(&mut self, touched: &Touched, schema: Option<&Schema>) -> Option<(Value, Cut)> {
        let schema = schema.filter(|it| {
            let is_passed = !touched.is_target && !touched.below.is_empty();
            is_passed && it.rules.is_empty() && it.logic == bellwether_schema::Logic::default()
        });
        match (self.text.get(self.position)?, schema) {
            (b'{', Some(schema)) => self.object(touched, schema),
            (b'[', Some(schema)) => match (is_of_parts(schema), touched.indexes()) {
                (true, Some(indexes)) if !touched.is_resized => self.list(&indexes, schema),
                _ => self.whole(),
            },
            _ => self.whole(),
        }
    }

    fn whole(&mut self) -> Option<(Value, Cut)> {
        let end = end_of_value(self.text, self.position);
        let value = serde_json::from_slice(self.text.get(self.position..end)?).ok()?;
        self.position = end;
        Some((value, Cut::default()))
    }

    fn object(&mut self, touched: &Touched, schema: &Schema) -> Option<(Value, Cut)> {
        let untouched = Touched::default();
        let (mut fields, mut cut) = (Map::new(), Cut::default());
        self.position += 1;
        loop {
            match self.text.get(self.position)? {
                b'}' => break,
                b',' => self.position += 1,
                _ => {}
            }
            let end = end_of_string(self.text, self.position + 1) + 1;
            let name: String = serde_json::from_slice(self.text.get(self.position..end)?).ok()?;
            self.position = end + 1;
            let below = touched.below.get(&name).unwrap_or(&untouched);
            let schema = schema.properties.get(&name);
            let (value, left_out) = self.value(below, schema.map(AsRef::as_ref))?;
            if !left_out.is_empty() {
                cut.members.insert(name.clone(), left_out);
            }
            fields.insert(name, value);
        }
        self.position += 1;
        Some((Value::Object(fields), cut))
    }

    fn list(
        &mut self,
        indexes: &BTreeMap<usize, &Touched>,
        schema: &Schema,
    ) -> Option<(Value, Cut)> {
        let (mut items, mut cut) = (Vec::new(), Cut::default());
        let mut gap = self.position + 1;
        self.position += 1;
        let mut number = 0;
        while *self.text.get(self.position)? != b']' {
            if self.text[self.position] == b',' {
                self.position += 1;
            }
            if let Some(touched) = indexes.get(&number) {
                cut.gaps.push(gap..self.position);
                let (item, left_out) = self.value(touched, schema.items.as_deref())?;
                gap = self.position;
                items.push(item);
                cut.items.push((number, left_out));
            } else {
                self.position = end_of_value(self.text, self.position);
            }
            number += 1;
        }
        cut.gaps.push(gap..self.position);
        self.position += 1;
        // Places that are not there: the whole object says what is wrong.
        (items.len() == indexes.len()).then_some((Value::Array(items), cut))
    }
}

/// True if whether a list is right depends on its items one by one.
fn is_of_parts(schema: &Schema) -> bool {
    schema.list_type == ListType::Atomic && !schema.limits.unique_items && schema.items.is_some()
}

#[cfg(test)]
mod tests {
    use bellwether_patch::json_patch::JsonPatch;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let item = json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "parts": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        }});
        let list = json!({"type": "array", "items": item});
        let with = |field: &str, value: Value| {
            let mut list = list.clone();
            list[field] = value;
            list
        };
        let mut keyed = with("x-kubernetes-list-type", json!("map"));
        keyed["x-kubernetes-list-map-keys"] = json!(["name"]);
        bellwether_schema::parse(
            &json!({"type": "object", "properties": {"status": {"type": "object", "properties": {
                "list": list, "keyed": keyed, "unique": with("uniqueItems", json!(true)),
                "ruled": with("x-kubernetes-validations", json!([{"rule": "true"}])),
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "last": {"type": "string"},
            }}}}),
        )
        .unwrap()
    }

    fn object(count: usize) -> Value {
        let part = |n: usize| json!({"n": n});
        let item = |n: usize| {
            let parts: Vec<Value> = (0..3).map(part).collect();
            json!({"name": format!("x\"{n}],\\"), "parts": parts})
        };
        let list: Vec<Value> = (0..count).map(item).collect();
        json!({"metadata": {"name": "x"}, "status": {
            "list": list, "keyed": list, "unique": list, "ruled": list, "free": {"list": list}, "last": "}]",
        }})
    }

    /// Applies a patch to an excerpt; nothing if there is none.
    fn patched(object: &Value, patch: &Value) -> Option<Value> {
        let text = serde_json::to_vec(object).unwrap();
        let patch = JsonPatch::parse(patch).unwrap();
        let places = patch.places()?;
        let excerpt = Excerpt::read(&text, &schema(), &places)?;
        let patch = patch.at_places(&excerpt.places(&places)?);
        let changed = patch.apply(excerpt.value.clone()).ok()?;
        let mut out = Vec::new();
        let fields = changed.as_object().unwrap();
        assert!(excerpt.has_members(fields));
        assert!(write(&excerpt.cut, &changed, &text, &mut out));
        // What is written is as serde would write it: sorted, without spaces.
        let read: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(out, serde_json::to_vec(&read).unwrap());
        Some(read)
    }

    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check(patch: Value, is_excerpt: bool) {
        let object = object(40);
        let whole = JsonPatch::parse(&patch).unwrap().apply(object.clone());
        let found = patched(&object, &patch);
        assert_eq!(found.is_some(), is_excerpt, "{patch}");
        if let Some(found) = found {
            assert_eq!(found, whole.unwrap(), "{patch}");
        }
    }

    #[test]
    fn only_the_items_that_are_named_are_read() {
        let text = serde_json::to_vec(&object(40)).unwrap();
        let patch = json!([
            {"op": "test", "path": "/status/list/7/name", "value": "x"},
            {"op": "add", "path": "/status/list/31/parts/1/n", "value": 9},
        ]);
        let places = JsonPatch::parse(&patch).unwrap().places().unwrap();
        let excerpt = Excerpt::read(&text, &schema(), &places).unwrap();
        let list = excerpt.value["status"]["list"].as_array().unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!(list[1]["parts"], json!([{"n": 1}]));
        let moved = excerpt.places(&places).unwrap();
        assert_eq!(
            moved[1].segments,
            ["status", "list", "1", "parts", "0", "n"]
        );
    }

    #[test]
    fn patches_of_items_are_applied_to_excerpts() {
        let replace = |path: &str| json!({"op": "replace", "path": path, "value": "new"});
        check(json!([replace("/status/list/0/name")]), true);
        check(
            json!([
                replace("/status/list/39/name"),
                replace("/status/list/3/name")
            ]),
            true,
        );
        check(json!([replace("/status/list/5")]), true);
        check(
            json!([{"op": "remove", "path": "/status/list/5/name"}]),
            true,
        );
        check(
            json!([{"op": "add", "path": "/status/list/5/parts/-", "value": {"n": 7}}]),
            true,
        );
        check(
            json!([replace("/status/list/5/name"), replace("/status/last")]),
            true,
        );
        check(
            json!([replace("/status/list/5/name"), {"op": "remove", "path": "/status/last"}]),
            true,
        );
        check(
            json!([replace("/status/list/5/name"), {"op": "add", "path": "/status/keyed/0", "value": 1}]),
            true,
        );
    }

    #[test]
    fn what_depends_on_all_items_needs_the_whole() {
        let replace = |path: &str| json!({"op": "replace", "path": path, "value": "new"});
        for path in [
            "/status/last",
            "/status/list",
            "/status/keyed/3/name",
            "/status/unique/3/name",
            "/status/ruled/3/name",
            "/status/free/list/3/name",
            "/status/list/40/name",
            "/status/list/-1/name",
            "/status/list/07/name",
            "/status/list/x/name",
        ] {
            check(json!([replace(path)]), false);
        }
        let name = replace("/status/list/3/name");
        check(
            json!([name, {"op": "remove", "path": "/status/list/7"}]),
            false,
        );
        check(
            json!([name, {"op": "add", "path": "/status/list/-", "value": {}}]),
            false,
        );
        check(
            json!([name, {"op": "test", "path": "/status/list", "value": []}]),
            false,
        );
        check(
            json!([name, {"op": "replace", "path": "/status", "value": {}}]),
            false,
        );
        check(
            json!([name, {"op": "copy", "from": "/status/last", "path": "/status/more"}]),
            false,
        );
        // What does not fit is refused where the whole is seen.
        check(
            json!([{"op": "test", "path": "/status/list/3/name", "value": "other"}]),
            false,
        );
    }

    proptest! {
        #[test]
        fn an_excerpt_gives_what_the_whole_gives(operations in prop::collection::vec(any_operation(), 1..5)) {
            let object = object(12);
            let patch = Value::from(operations);
            if let Some(found) = patched(&object, &patch) {
                let whole = JsonPatch::parse(&patch).unwrap().apply(object);
                prop_assert_eq!(found, whole.unwrap());
            }
        }
    }

    fn any_operation() -> impl Strategy<Value = Value> {
        let kind = prop_oneof![Just("add"), Just("replace"), Just("remove")];
        let path = prop_oneof![
            (0..14_usize).prop_map(|n| format!("/status/list/{n}/name")),
            (0..14_usize, 0..4_usize).prop_map(|(n, m)| format!("/status/list/{n}/parts/{m}/n")),
            (0..14_usize, 0..4_usize).prop_map(|(n, m)| format!("/status/list/{n}/parts/{m}")),
            (0..14_usize).prop_map(|n| format!("/status/list/{n}")),
            (0..14_usize).prop_map(|n| format!("/status/keyed/{n}")),
            Just("/status/last".to_owned()),
            Just("/status/more".to_owned()),
        ];
        let value = prop_oneof![
            Just(json!("}]\"")),
            Just(json!(1)),
            Just(json!({"parts": []})),
            Just(json!(null))
        ];
        (kind, path, value)
            .prop_map(|(op, path, value)| json!({"op": op, "path": path, "value": value}))
    }
}

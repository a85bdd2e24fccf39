//! Whatever a client sends, no function panics, and the laws hold.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

use bellwether_kinds::{
    Creation, Resource, default, from_storage, prepare_for_create, prepare_for_part_update,
    prepare_for_update, resources, row, to_storage, validate, validate_part,
};
use bellwether_schema::{Schema, Type};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Words that make values look like something.
const WORDS: &[&str] = &[
    "",
    "a",
    "A b",
    "None",
    "Always",
    "RollingUpdate",
    "1",
    "25%",
    "-1",
    "500m",
    "10.0.0.1",
    "fe80::1",
    "x/y",
    "*/5 * * * *",
    "2030-01-01T00:00:00Z",
    "Indexed",
    "NodePort",
    "ClientIP",
    "LoadBalancer",
    "ExternalName",
    "v1",
    "eA==",
    "[{\"type\":\"Pods\"}]",
    "ä",
];

/// A small generator, so that a failure is one number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

/// A value that mostly fits the schema.
fn fitting(schema: &Schema, dice: &mut Dice, depth: usize) -> Value {
    if depth == 0 || dice.roll(40) == 0 {
        return anything(dice, 2);
    }
    match schema.kind {
        Some(Type::Object) if !schema.properties.is_empty() => {
            let mut fields = Map::new();
            for (name, schema) in &schema.properties {
                if dice.roll(4) != 0 {
                    fields.insert(name.clone(), fitting(schema, dice, depth - 1));
                }
            }
            fields.into()
        }
        Some(Type::Object) => {
            let values = schema.additional_properties.as_ref();
            let entries = (0..dice.roll(3)).map(|_| {
                let value = match values {
                    Some(schema) => fitting(schema, dice, depth - 1),
                    None => anything(dice, 2),
                };
                (WORDS[dice.roll(WORDS.len())].to_owned(), value)
            });
            entries
                .collect::<Vec<_>>()
                .into_iter()
                .collect::<Map<_, _>>()
                .into()
        }
        Some(Type::Array) => (0..dice.roll(3))
            .map(|_| match &schema.items {
                Some(schema) => fitting(schema, dice, depth - 1),
                None => anything(dice, 2),
            })
            .collect::<Vec<_>>()
            .into(),
        Some(Type::Integer | Type::Number) => {
            [json!(0), json!(1), json!(-1), json!(80), json!(i64::MAX)][dice.roll(5)].clone()
        }
        Some(Type::Boolean) => (dice.roll(2) == 0).into(),
        _ => WORDS[dice.roll(WORDS.len())].into(),
    }
}

/// A value that fits nothing in particular.
fn anything(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => (dice.roll(2) == 0).into(),
        2 => [json!(0), json!(-7), json!(1.5), json!(u64::MAX)][dice.roll(4)].clone(),
        3 | 4 => WORDS[dice.roll(WORDS.len())].into(),
        5 => (0..dice.roll(3))
            .map(|_| anything(dice, depth - 1))
            .collect::<Vec<_>>()
            .into(),
        _ => {
            let key = WORDS[dice.roll(WORDS.len())];
            json!({ key: anything(dice, depth - 1) })
        }
    }
}

fn exercise(resource: &Resource, mut new: Value, mut old: Value) {
    let now = Timestamp::UNIX_EPOCH;
    let user = json!({"username": "someone"});
    let creation = Creation {
        uid: "1",
        now,
        user: &user,
    };
    default(resource, &mut new);
    to_storage(resource, &mut new);
    to_storage(resource, &mut old);
    let mut created = new.clone();
    prepare_for_create(resource, &mut created, &creation);
    validate(resource, &created, None);
    assert!(
        row(resource, &created, now).len() >= resource.columns.len(),
        "{resource:?}"
    );
    from_storage(resource, &mut created);
    for part in [
        "status",
        "approval",
        "finalize",
        "ephemeralcontainers",
        "resize",
    ] {
        let mut changed = new.clone();
        prepare_for_part_update(resource, part, &mut changed, &old, now);
        validate_part(resource, part, &changed, &old);
    }
    prepare_for_update(resource, &mut new, &old);
    validate(resource, &new, Some(&old));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_panics(seed in 1..u64::MAX) {
        let mut dice = Dice(seed);
        for resource in resources() {
            let schema = resource.schema();
            let new = fitting(&schema, &mut dice, 9);
            let old = fitting(&schema, &mut dice, 9);
            exercise(resource, new, old);
            exercise(resource, anything(&mut dice, 4), anything(&mut dice, 4));
        }
    }

    #[test]
    fn defaults_are_filled_in_once(seed in 1..u64::MAX) {
        let mut dice = Dice(seed);
        for resource in resources() {
            let mut once = fitting(&resource.schema(), &mut dice, 9);
            default(resource, &mut once);
            let mut twice = once.clone();
            default(resource, &mut twice);
            prop_assert_eq!(once, twice, "{:?}", resource);
        }
    }

    #[test]
    fn an_update_that_changes_nothing_keeps_the_generation(seed in 1..u64::MAX) {
        let mut dice = Dice(seed);
        for resource in resources() {
            let mut old = fitting(&resource.schema(), &mut dice, 6);
            if !old["metadata"].is_object() {
                continue;
            }
            old["metadata"]["generation"] = 5.into();
            default(resource, &mut old);
            to_storage(resource, &mut old);
            let user = Value::Null;
            let creation = Creation { uid: "1", now: Timestamp::UNIX_EPOCH, user: &user };
            prepare_for_create(resource, &mut old, &creation);
            let mut new = old.clone();
            prepare_for_update(resource, &mut new, &old);
            prop_assert_eq!(&new["metadata"]["generation"], &old["metadata"]["generation"]);
        }
    }
}

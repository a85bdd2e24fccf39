//! What `kubectl get` shows: columns and cells, and the words for ages.
//!
//! Columns of priority 1 are those of `-o wide`; their cells are always part of a row, since the
//! client decides what it shows.

use jiff::Timestamp;
use serde_json::Value;

use crate::value::{at, entries, int, list, text};
use crate::{Column, Resource, selector};

/// The cells of one object, one per column of [`Resource::columns`].
pub fn row(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    (resource.row)(object, now)
}

/// A column that is always shown.
pub(crate) const fn column(
    name: &'static str,
    kind: &'static str,
    description: &'static str,
) -> Column {
    Column {
        name,
        kind,
        format: "",
        description,
        priority: 0,
    }
}

/// A text column that is always shown.
pub(crate) const fn words(name: &'static str, description: &'static str) -> Column {
    column(name, "string", description)
}

/// A text column that is shown with `-o wide`.
pub(crate) const fn wide(name: &'static str, description: &'static str) -> Column {
    Column {
        priority: 1,
        ..column(name, "string", description)
    }
}

/// The column of the object's name.
pub(crate) const NAME: Column = Column {
    format: "name",
    ..words("Name", "Name of the object.")
};

/// The column of the time since creation.
pub(crate) const AGE: Column = words("Age", "Time since the object was created.");

/// The wide column of container names.
pub(crate) const CONTAINERS: Column = wide("Containers", "Names of the containers.");
/// The wide column of container images.
pub(crate) const IMAGES: Column = wide("Images", "Images of the containers.");
/// The wide column of a selector.
pub(crate) const SELECTOR: Column = wide("Selector", "Labels of the pods that belong to it.");

/// Columns of kinds with nothing else to tell.
pub(crate) const NAME_AND_AGE: &[Column] = &[NAME, AGE];

/// Columns of kinds that nobody wrote columns for.
pub(crate) const NAME_AND_CREATION: &[Column] = &[
    NAME,
    column("Created At", "date", "Time when the object was created."),
];

/// Cells of [`NAME_AND_AGE`].
pub(crate) fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), age(object, now)]
}

/// Cells of [`NAME_AND_CREATION`].
pub(crate) fn name_and_creation(object: &Value, _now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(object, &["metadata", "creationTimestamp"]).into(),
    ]
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> Value {
    text(object, &["metadata", "name"]).into()
}

/// The time since an object was created.
pub(crate) fn age(object: &Value, now: Timestamp) -> Value {
    since(at(object, &["metadata", "creationTimestamp"]), now).into()
}

/// The time since a timestamp.
pub(crate) fn since(timestamp: &Value, now: Timestamp) -> String {
    match parse(timestamp) {
        Some(then) => human(now.as_second() - then.as_second()),
        None => "<unknown>".to_owned(),
    }
}

/// A timestamp in an object.
pub(crate) fn parse(timestamp: &Value) -> Option<Timestamp> {
    timestamp.as_str()?.parse().ok()
}

/// A number of seconds in the words of kubectl: two units while they matter, then one.
pub fn human(seconds: i64) -> String {
    const HOURS_A_DAY: i64 = 24;
    const DAYS_A_YEAR: i64 = 365;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / HOURS_A_DAY;
    let two = |large: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    };
    if seconds < -1 {
        "<invalid>".to_owned()
    } else if seconds < 0 {
        "0s".to_owned()
    } else if seconds < 2 * 60 {
        format!("{seconds}s")
    } else if minutes < 10 {
        two(minutes, 'm', seconds % 60, 's')
    } else if minutes < 3 * 60 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, 'h', minutes % 60, 'm')
    } else if hours < 2 * HOURS_A_DAY {
        format!("{hours}h")
    } else if days < 8 {
        two(days, 'd', hours % HOURS_A_DAY, 'h')
    } else if days < 2 * DAYS_A_YEAR {
        format!("{days}d")
    } else if days < 8 * DAYS_A_YEAR {
        two(days / DAYS_A_YEAR, 'y', days % DAYS_A_YEAR, 'd')
    } else {
        format!("{}y", days / DAYS_A_YEAR)
    }
}

/// Names and images of containers, in two cells.
pub(crate) fn containers(pod_spec: &Value) -> [Value; 2] {
    let join = |key: &str| {
        let all: Vec<_> = list(pod_spec, &["containers"])
            .iter()
            .map(|container| text(container, &[key]))
            .collect();
        Value::from(all.join(","))
    };
    [join("name"), join("image")]
}

/// A map of labels: `a=b,c=d`.
pub(crate) fn labels(map: &Value) -> Value {
    let all: Vec<_> = entries(map, &[])
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if all.is_empty() {
        "<none>".into()
    } else {
        all.join(",").into()
    }
}

/// A label selector, or `<none>` for one that selects everything.
pub(crate) fn label_selector(value: &Value) -> Value {
    let all = selector::format(value);
    if all.is_empty() {
        "<none>".into()
    } else {
        all.into()
    }
}

/// `ready/desired`.
pub(crate) fn fraction(part: i64, whole: i64) -> Value {
    format!("{part}/{whole}").into()
}

/// The integer at a path as a cell.
pub(crate) fn number(object: &Value, path: &[&str]) -> Value {
    int(object, path).into()
}

/// The text at a path as a cell.
pub(crate) fn cell(object: &Value, path: &[&str]) -> Value {
    text(object, path).into()
}

/// The text at a path as a cell, or what stands for its absence.
pub(crate) fn cell_or(object: &Value, path: &[&str], absent: &str) -> Value {
    match text(object, path) {
        "" => absent.into(),
        found => found.into(),
    }
}

/// The first few of many: `a,b,c + 2 more...`.
pub(crate) fn first_few(all: &[String], limit: usize, separator: &str, none: &str) -> String {
    let shown = all[..all.len().min(limit)].join(separator);
    if all.len() > limit {
        format!("{shown} + {} more...", all.len() - limit)
    } else if shown.is_empty() {
        none.to_owned()
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        const DAY: i64 = 24 * 3600;
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (10 * 60, "10m"),
            (179 * 60 + 59, "179m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (8 * 3600 + 60, "8h"),
            (47 * 3600, "47h"),
            (2 * DAY, "2d"),
            (3 * DAY + 4 * 3600, "3d4h"),
            (8 * DAY + 3600, "8d"),
            (729 * DAY, "729d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (8 * 365 * DAY + DAY, "8y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}

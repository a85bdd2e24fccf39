//! Formats that nothing checks: the server warns of them.

use crate::document::{Document, Items};
use crate::format::Format;

/// The formats of strings in a schema that are not known, as they are written; one that occurs
/// several times is named as often.
pub fn unrecognized_formats(document: &Document) -> Vec<String> {
    let mut found = Vec::new();
    collect(document, &mut found);
    found
}

fn collect(document: &Document, found: &mut Vec<String>) {
    let format = &document.format;
    if document.kind == "string" && !format.is_empty() && Format::parse(format).is_none() {
        found.push(format.clone());
    }
    let positions = match &document.items {
        Some(Items::Positions(positions)) => positions.as_slice(),
        _ => &[],
    };
    let children = (document.item_schema().into_iter())
        .chain(positions)
        .chain(&document.all_of)
        .chain(&document.one_of)
        .chain(&document.any_of)
        .chain(document.not.as_deref())
        .chain(document.properties.values())
        .chain(document.additional_schema());
    for child in children {
        collect(child, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_formats_of_strings_are_looked_at() {
        let (document, _) = Document::parse(&json!({
            "type": "object", "format": "odd",
            "properties": {
                "a": {"type": "string", "format": "date-time"},
                "b": {"type": "string", "format": "colour"},
                "c": {"type": "integer", "format": "int32"},
                "d": {"type": "array", "items": {"type": "string", "format": "shape"}},
                "e": {"type": "object", "additionalProperties": {"type": "string", "format": "size"}},
            },
        }))
        .unwrap();
        assert_eq!(unrecognized_formats(&document), ["colour", "shape", "size"]);
    }
}

//! Which fields the snippets of a definition look at: a member reports single values, and only those that are asked for.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_json::path::str_at;

use crate::definition::Definition;
use crate::label::Manifest;

/// Fields that are lists or maps: only single values come back.
const STRUCTURES: [&str; 11] = [
    "metadata",
    "spec",
    "status",
    "conditions",
    "loadBalancer",
    "ingress",
    "labels",
    "annotations",
    "template",
    "containers",
    "ports",
];

/// How many conditions of an object come back where a snippet searches the conditions of all objects: more than kinds of Kubernetes have.
const CONDITIONS: usize = 6;

/// Fields that snippets look at, besides those that come back of all objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedFields {
    /// Of what a component is.
    pub output: BTreeSet<String>,
    /// Of further objects, by the name of the output.
    pub outputs: BTreeMap<String, BTreeSet<String>>,
    /// Of every object.
    pub all: BTreeSet<String>,
}

impl AskedFields {
    /// What the snippets of a definition look at.
    pub fn of(definition: &Definition) -> Self {
        let mut asked = Self::default();
        for snippet in ["healthPolicy", "customStatus", "details"] {
            let source = str_at(&definition.object, &["spec", "status", snippet]);
            asked.scan(source.unwrap_or_default());
        }
        asked
    }

    fn scan(&mut self, source: &str) {
        if source.contains("in context.outputs") && source.contains(".status.conditions") {
            let names = (0..CONDITIONS).flat_map(|index| {
                ["type", "status"].map(|name| format!("status.conditions[{index}].{name}"))
            });
            self.all.extend(names);
        }
        for (at, marker) in source.match_indices("context.output") {
            let rest = &source[at + marker.len()..];
            let (names, rest_of_object) = match rest.strip_prefix('s') {
                Some(rest) => match reference(rest).split_first() {
                    Some((output, steps)) => (Some(output.clone()), steps.to_vec()),
                    None => continue,
                },
                None => (None, reference(rest)),
            };
            let is_value = |step: &String| !STRUCTURES.contains(&step.as_str());
            if !rest_of_object.last().is_some_and(is_value) {
                continue;
            }
            let field = rest_of_object.join(".").replace(".[", "[");
            match names {
                None => self.output.insert(field),
                Some(output) => self.outputs.entry(output).or_default().insert(field),
            };
        }
    }

    /// What is asked of one object.
    pub fn of_manifest(&self, manifest: &Manifest) -> impl Iterator<Item = &str> {
        let fields = if manifest.resource.is_empty() {
            Some(&self.output)
        } else {
            self.outputs.get(&manifest.resource)
        };
        let fields = fields.into_iter().flatten();
        fields.chain(&self.all).map(String::as_str)
    }
}

/// The names and indexes that follow in a reference: `.status.items[0].name`.
fn reference(source: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut rest = source;
    loop {
        let (step, after) = if let Some(inner) = rest.strip_prefix('.') {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = inner.find(|c| !is_part(c)).unwrap_or(inner.len());
            (inner[..end].to_owned(), &inner[end..])
        } else if let Some((name, after)) = rest
            .strip_prefix("[\"")
            .and_then(|inner| inner.split_once("\"]"))
        {
            (name.to_owned(), after)
        } else if let Some((index, after)) = rest
            .strip_prefix('[')
            .and_then(|inner| inner.split_once(']'))
            .filter(|(index, _)| index.parse::<u16>().is_ok())
        {
            (format!("[{index}]"), after)
        } else {
            return steps;
        };
        if step.is_empty() || step.contains('.') || step.contains('/') {
            return steps;
        }
        steps.push(step);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin;
    use crate::definition::DefinitionKind;

    #[test]
    fn what_snippets_look_at_is_asked_for() {
        let health = "isHealth: context.output.status.phase == \"Up\" && context.output.status.items[0].ready\n\
            if context.outputs.ingress.status.loadBalancer.ingress[0].ip != _|_ {x: context.output.status.conditions}\n\
            y: context.outputs[\"my-service\"].spec.clusterIP";
        let object = json!({"spec": {"status": {"healthPolicy": health}}});
        let asked = AskedFields::of(&Definition::new(DefinitionKind::Component, "x", object));
        let set = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect();
        let expected = AskedFields {
            output: set(&["status.phase", "status.items[0].ready"]),
            outputs: BTreeMap::from([
                (
                    "ingress".to_owned(),
                    set(&["status.loadBalancer.ingress[0].ip"]),
                ),
                ("my-service".to_owned(), set(&["spec.clusterIP"])),
            ]),
            all: BTreeSet::new(),
        };
        assert_eq!(asked, expected);
    }

    #[test]
    fn built_in_types_are_told_of_members_what_they_look_at() {
        let asked = |kind, name: &str| AskedFields::of(&builtin::find(kind, name).unwrap());
        let chart = asked(DefinitionKind::Component, "helmchart");
        for field in ["status.conditions[0].type", "status.conditions[5].status"] {
            assert!(chart.all.contains(field), "{chart:?}");
        }
        for (name, output) in [
            ("expose", "service"),
            ("gateway", "ingress"),
            ("ingress", "ingress"),
            ("ingress-1-20", "ingress"),
            ("pure-ingress", "ingress"),
        ] {
            let asked = asked(DefinitionKind::Trait, name);
            let address = "status.loadBalancer.ingress[0].ip";
            assert!(asked.outputs[output].contains(address), "{name}: {asked:?}");
            assert!(asked.all.is_empty(), "{name}: {asked:?}");
        }
    }
}

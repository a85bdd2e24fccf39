//! Amounts of several resources at once: what a pod asks for, and sums of such.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bellwether_json::quantity::Quantity;
use serde_json::{Map, Value};

use crate::check;
use crate::value::{at, entries, list, text};

/// How much of each resource, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amounts(pub BTreeMap<String, Quantity>);

impl Amounts {
    /// What an object of quantities says; what is no quantity counts as nothing.
    pub fn read(object: &Value) -> Self {
        let entries = entries(object, &[]);
        let amounts = entries.filter_map(|(name, value)| {
            let amount = check::quantity(value)?;
            Some((name.clone(), amount))
        });
        Self(amounts.collect())
    }

    /// The amount of a resource.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.0.get(name)
    }

    /// Sets the amount of a resource.
    pub(crate) fn set(&mut self, name: impl Into<String>, amount: Quantity) {
        self.0.insert(name.into(), amount);
    }

    /// Adds to what is there.
    pub fn add(&mut self, others: &Self) {
        for (name, amount) in &others.0 {
            let sum = self.0.get(name).map(|own| own.add(amount));
            self.set(name, sum.unwrap_or_else(|| amount.clone()));
        }
    }

    /// Makes each amount at least what the other says.
    fn raise(&mut self, others: &Self) {
        for (name, amount) in &others.0 {
            if self.0.get(name).is_none_or(|own| own < amount) {
                self.set(name, amount.clone());
            }
        }
    }

    /// Keeps those whose name passes.
    pub fn retain(&mut self, mut passes: impl FnMut(&str) -> bool) {
        self.0.retain(|name, _| passes(name));
    }

    /// What is more than in `before`.
    #[must_use]
    pub fn increase_since(&self, before: &Self) -> Self {
        let mut increase = Self::default();
        for (name, amount) in &self.0 {
            let grown = match before.get(name) {
                Some(before) => amount.sub(before),
                None => amount.clone(),
            };
            if grown.signum() > 0 {
                increase.set(name, grown);
            }
        }
        increase
    }

    /// The amounts as an object of quantities.
    pub fn to_json(&self) -> Value {
        let fields = self.0.iter();
        let fields: Map<String, Value> = fields
            .map(|(name, amount)| (name.clone(), amount.to_string().into()))
            .collect();
        Value::Object(fields)
    }
}

/// `cpu=1,memory=2Gi`, as Kubernetes prints amounts in messages.
impl std::fmt::Display for Amounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (position, (name, amount)) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_char(',')?;
            }
            write!(f, "{name}={amount}")?;
        }
        Ok(())
    }
}

/// What the containers of a pod ask for together (`requests`), or may take (`limits`): the sum of
/// those that run side by side, or what one that runs before them needs if that is more.
pub(crate) fn of_containers(pod: &Value, which: &str) -> Amounts {
    let of = |container: &Value| Amounts::read(at(container, &["resources", which]));
    let mut sum = Amounts::default();
    for container in list(pod, &["spec", "containers"]) {
        sum.add(&of(container));
    }
    // Those that are restarted stay, and run beside all that come later.
    let (mut staying, mut first) = (Amounts::default(), Amounts::default());
    for container in list(pod, &["spec", "initContainers"]) {
        if text(container, &["restartPolicy"]) == "Always" {
            staying.add(&of(container));
            first.raise(&staying);
        } else {
            let mut needs = of(container);
            needs.add(&staying);
            first.raise(&needs);
        }
    }
    sum.add(&staying);
    sum.raise(&first);
    // What the pod as a whole says counts before its containers.
    let whole = Amounts::read(at(pod, &["spec", "resources", which]));
    for (name, amount) in whole.0 {
        sum.set(name, amount);
    }
    sum
}

/// What a pod takes of a node: its containers, and what running them costs.
pub(crate) fn of_pod(pod: &Value, which: &str) -> Amounts {
    let mut sum = of_containers(pod, which);
    let overhead = Amounts::read(at(pod, &["spec", "overhead"]));
    for (name, amount) in &overhead.0 {
        match sum.get(name) {
            Some(own) => {
                let total = own.add(amount);
                sum.set(name, total);
            }
            // Without a limit there is none to raise.
            None if which == "requests" => sum.set(name, amount.clone()),
            None => {}
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_needs_what_runs_together_or_before() {
        let cpu = |amount: &str| json!({"resources": {"requests": {"cpu": amount}}});
        let mut staying = cpu("100m");
        staying["restartPolicy"] = "Always".into();
        let pod = json!({"spec": {
            "containers": [cpu("200m"), cpu("300m")],
            "initContainers": [cpu("700m"), staying, cpu("200m")],
            "overhead": {"cpu": "50m"},
        }});
        assert_eq!(of_containers(&pod, "requests").to_string(), "cpu=700m");
        assert_eq!(of_pod(&pod, "requests").to_string(), "cpu=750m");
        assert_eq!(of_pod(&pod, "limits").to_string(), "");
    }

    #[test]
    fn only_what_grows_is_an_increase() {
        let read = |object: Value| Amounts::read(&object);
        let now = read(json!({"a": "3", "b": "1", "c": "2"}));
        let before = read(json!({"a": "1", "b": "1", "c": "5"}));
        assert_eq!(now.increase_since(&before).to_string(), "a=2");
    }
}

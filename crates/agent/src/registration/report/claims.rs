//! What a member says about itself: its ClusterClaims and, where that is asked for, the
//! ClusterProperties of the about API.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::about::ClusterProperty;
use bellwether_api::cluster::names::{claim, label};
use bellwether_api::cluster::{ClusterClaim, ManagedClusterClaim};
use bellwether_api::meta::ObjectMeta;

/// How many claims besides the reserved ones are reported unless somebody says otherwise.
const MOST_CLAIMS: usize = 20;
/// What a hub takes as a value at most.
const LONGEST_VALUE: usize = 1024;

/// Which claims are reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimOptions {
    /// How many besides the reserved ones.
    pub most_custom: usize,
    /// What the names of further reserved claims end with.
    pub reserved_suffixes: Vec<String>,
    /// Whether ClusterProperties are reported too. The member has to know that kind.
    pub properties: bool,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        Self {
            most_custom: MOST_CLAIMS,
            reserved_suffixes: Vec::new(),
            properties: false,
        }
    }
}

/// What is reported of all that a member claims.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Claims {
    /// The reserved ones first, each sorted by name.
    pub(super) reported: Vec<ManagedClusterClaim>,
    /// How many there are that are not reserved.
    pub(super) custom: usize,
    /// How many of these are left out.
    pub(super) left_out: usize,
}

impl Claims {
    /// Chooses among claims and properties; of two with one name the property counts.
    pub(super) fn of(
        claims: &[Arc<ClusterClaim>],
        properties: &[Arc<ClusterProperty>],
        options: &ClaimOptions,
    ) -> Self {
        let claims = claims.iter().map(|it| (&it.metadata, &it.spec.value));
        let properties = properties.iter().map(|it| (&it.metadata, &it.spec.value));
        let told: BTreeMap<&str, &str> = claims.chain(properties).filter_map(read).collect();
        let is_reserved = |name: &str| {
            let mut suffixes = options.reserved_suffixes.iter();
            claim::RESERVED.contains(&name) || suffixes.any(|suffix| name.ends_with(suffix))
        };
        let (mut reported, mut custom): (Vec<_>, Vec<_>) =
            told.into_iter().partition(|(name, _)| is_reserved(name));
        let count = custom.len();
        custom.truncate(options.most_custom);
        let left_out = count - custom.len();
        reported.append(&mut custom);
        let claim = |(name, value): (&str, &str)| ManagedClusterClaim {
            name: Some(name.to_owned()),
            value: Some(value.to_owned()),
            ..ManagedClusterClaim::default()
        };
        Self {
            reported: reported.into_iter().map(claim).collect(),
            custom: count,
            left_out,
        }
    }

    /// What there is to say about claims that are left out.
    pub(super) fn warning(&self) -> Option<String> {
        let (custom, left_out) = (self.custom, self.left_out);
        let most = custom - left_out;
        (left_out > 0).then(|| {
            format!(
                "{custom} cluster claims are found. It exceeds the max number of custom cluster \
                 claims ({most}). {left_out} custom cluster claims are not exposed."
            )
        })
    }
}

/// Name and value of what is meant for the hub. Values that the hub would refuse, and all others with
/// them, are left out.
fn read<'a>((metadata, value): (&'a ObjectMeta, &'a Option<String>)) -> Option<(&'a str, &'a str)> {
    let labels = metadata.labels.as_ref();
    if labels.is_some_and(|labels| labels.contains_key(label::SPOKE_ONLY)) {
        return None;
    }
    let value = value.as_deref()?;
    let fits = !value.is_empty() && value.chars().count() <= LONGEST_VALUE;
    fits.then_some((metadata.name.as_deref()?, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object<K: serde::de::DeserializeOwned>(name: &str, value: &str) -> Arc<K> {
        let object = json!({"metadata": {"name": name}, "spec": {"value": value}});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn told(claims: &Claims) -> Vec<String> {
        let text = |it: &Option<String>| it.clone().unwrap_or_default();
        let reported = claims.reported.iter();
        reported
            .map(|it| format!("{}={}", text(&it.name), text(&it.value)))
            .collect()
    }

    #[test]
    fn reserved_names_and_endings_come_first_and_the_rest_is_cut() {
        let names = [
            "z",
            "b",
            "id.k8s.io",
            "zone.example.com",
            "a",
            "example.com",
        ];
        let claims: Vec<_> = names.iter().map(|name| object(name, "v")).collect();
        let options = ClaimOptions {
            most_custom: 2,
            reserved_suffixes: vec![".example.com".to_owned()],
            properties: false,
        };
        let chosen = Claims::of(&claims, &[], &options);
        assert_eq!(
            told(&chosen),
            ["id.k8s.io=v", "zone.example.com=v", "a=v", "b=v"]
        );
        assert_eq!((chosen.custom, chosen.left_out), (4, 2));
        assert_eq!(
            chosen.warning().unwrap(),
            "4 cluster claims are found. It exceeds the max number of custom cluster claims (2). \
             2 custom cluster claims are not exposed."
        );
        let all = Claims::of(&claims, &[], &ClaimOptions::default());
        assert_eq!((all.reported.len(), all.warning()), (6, None));
    }

    #[test]
    fn a_property_counts_more_than_a_claim_of_its_name() {
        let claims = [object("a", "claim"), object("b", "claim")];
        let properties = [object("b", "property"), object("c", "property")];
        let chosen = Claims::of(&claims, &properties, &ClaimOptions::default());
        assert_eq!(told(&chosen), ["a=claim", "b=property", "c=property"]);
    }

    #[test]
    fn what_is_not_for_the_hub_or_too_long_for_it_is_left_out() {
        let own = json!({"metadata": {"name": "own", "labels":
            {"open-cluster-management.io/spoke-only": ""}}, "spec": {"value": "v"}});
        let own: Arc<ClusterClaim> = Arc::new(serde_json::from_value(own).unwrap());
        let claims = [own, object("empty", ""), object("fits", &"ä".repeat(1024))];
        let properties = [object("long", &"x".repeat(1025))];
        let chosen = Claims::of(&claims, &properties, &ClaimOptions::default());
        assert_eq!(chosen.reported.len(), 1);
        assert_eq!(chosen.reported[0].name.as_deref(), Some("fits"));
    }
}

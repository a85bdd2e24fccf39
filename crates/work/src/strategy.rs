//! How a manifest of a work is brought to the cluster, in the terms of `bellwether_apply`.

use bellwether_api::Kind as _;
use bellwether_api::multicluster::AppliedWork;
use bellwether_api::work::names::{FIELD_MANAGER, annotation};
use bellwether_api::work::{
    AppliedManifestWork, IgnoreField, IgnoreFieldsCondition, ServerSideApply, UpdateStrategy,
    UpdateStrategyType,
};
use bellwether_apply::fields::FieldSelector;
use bellwether_apply::removal::OwnerKind;
use bellwether_apply::{IgnoreCondition, IgnoredFields, ServerSide, Strategy};

/// The kinds of records of works, of both interfaces: what the record of another work owns too is not
/// deleted.
pub const RECORD_KINDS: [OwnerKind<'static>; 2] = [
    OwnerKind {
        group: AppliedManifestWork::NAMES.group,
        kind: AppliedManifestWork::NAMES.kind,
    },
    OwnerKind {
        group: AppliedWork::NAMES.group,
        kind: AppliedWork::NAMES.kind,
    },
];

/// Why a manifest has no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// There is no such strategy.
    #[error(
        "the update strategy {0} is not known: use Update, CreateOnly, ServerSideApply or ReadOnly"
    )]
    Unknown(String),
    /// The field manager would not be ours.
    #[error("the field manager {0} does not begin with work-agent")]
    FieldManager(String),
}

/// Returns the strategy that a manifest configuration asks for; nothing is Update.
pub fn strategy(update: Option<&UpdateStrategy>) -> Result<Strategy<'_>, StrategyError> {
    let Some(update) = update else {
        return Ok(Strategy::Update);
    };
    match &update.kind {
        UpdateStrategyType::Update => Ok(Strategy::Update),
        UpdateStrategyType::CreateOnly => Ok(Strategy::CreateOnly),
        UpdateStrategyType::ReadOnly => Ok(Strategy::ReadOnly),
        UpdateStrategyType::ServerSideApply => {
            server_side(update.server_side_apply.as_ref()).map(Strategy::ServerSide)
        }
        UpdateStrategyType::Other(name) => Err(StrategyError::Unknown(name.clone())),
    }
}

fn server_side(settings: Option<&ServerSideApply>) -> Result<ServerSide<'_>, StrategyError> {
    let manager = settings
        .and_then(|settings| settings.field_manager.as_deref())
        .filter(|manager| !manager.is_empty())
        .unwrap_or(FIELD_MANAGER);
    if !manager.starts_with(FIELD_MANAGER) {
        return Err(StrategyError::FieldManager(manager.to_owned()));
    }
    let ignore = settings.map_or(&[][..], |settings| &settings.ignore_fields);
    Ok(ServerSide {
        manager,
        force: settings.is_some_and(|settings| settings.force),
        ignore: ignore.iter().map(ignored).collect(),
        hash_annotation: annotation::CONFIG_SPEC_HASH,
    })
}

fn ignored(field: &IgnoreField) -> IgnoredFields<'_> {
    IgnoredFields {
        fields: FieldSelector {
            json_paths: &field.json_paths,
            json_pointers: &field.json_pointers,
            jq_paths: &field.jq_path_expressions,
        },
        condition: if field.condition == IgnoreFieldsCondition::OnSpokePresent {
            IgnoreCondition::Present
        } else {
            IgnoreCondition::Changed
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn unknown_strategies_and_managers_of_others_are_refused() {
        let check = |update: Value, expected: &str| {
            let update: UpdateStrategy = serde_json::from_value(update).unwrap();
            let error = strategy(Some(&update)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(
            json!({"type": "Guess"}),
            "the update strategy Guess is not known",
        );
        check(
            json!({"type": "ServerSideApply", "serverSideApply": {"fieldManager": "me"}}),
            "the field manager me does not begin with work-agent",
        );
    }

    #[test]
    fn fields_are_ignored_as_the_configuration_says() {
        let update: UpdateStrategy = serde_json::from_value(json!({
            "type": "ServerSideApply",
            "serverSideApply": {"force": true, "ignoreFields": [
                {"condition": "OnSpokeChange", "jsonPointers": ["/spec/replicas"]},
                {"condition": "OnSpokePresent", "jqPathExpressions": [".spec.replicas"]},
            ]},
        }))
        .unwrap();
        let found = strategy(Some(&update)).unwrap();
        let Strategy::ServerSide(settings) = &found else {
            panic!("{found:?}");
        };
        assert_eq!((settings.manager, settings.force), ("work-agent", true));
        let conditions: Vec<_> = settings.ignore.iter().map(|it| it.condition).collect();
        assert_eq!(
            conditions,
            [IgnoreCondition::Changed, IgnoreCondition::Present]
        );
        assert!(found.has_programs());
        assert_eq!(strategy(None), Ok(Strategy::Update));
    }
}

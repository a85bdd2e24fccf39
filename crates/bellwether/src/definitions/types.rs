//! The types that an application can use: built-in ones, and those of the hub if there is one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::oam;
use bellwether_application::builtin;
use bellwether_application::definition::{Definition, DefinitionKind};
use bellwether_application::file::SYSTEM_NAMESPACE;
use clap::Args;
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::Value;

use crate::cli::{chain, print_warning};
use crate::connect::ConnectArgs;

/// Built-in types are known without the hub, so that nobody waits long for one that does not answer.
const HUB_TIMEOUT: Duration = Duration::from_secs(3);

/// Whose types count besides the built-in ones.
#[derive(Debug, Args)]
pub(crate) struct TypesArgs {
    /// The namespace whose types come first, before those of vela-system and the built-in ones.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Ask no hub: built-in types only.
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl TypesArgs {
    /// Reads the types. A hub that does not answer is a warning; without a kubeconfig there is none to ask.
    pub(crate) async fn read(&self) -> Types {
        let mut types = Types::built_in();
        if self.offline {
            return types;
        }
        let Ok(connection) = self.connect.open(self.namespace.as_deref()).await else {
            return types;
        };
        let found = tokio::time::timeout(
            HUB_TIMEOUT,
            definitions(&connection.client, &connection.namespace),
        );
        match found.await {
            Ok(Ok(objects)) => {
                for object in objects {
                    types.insert(object);
                }
            }
            Ok(Err(error)) => warn(&chain(&error.into())),
            Err(_) => warn("it does not answer"),
        }
        types
    }
}

fn warn(why: &str) {
    print_warning(&format!(
        "only built-in types are shown, not those of the hub: {why}"
    ));
}

/// The definitions of vela-system, then those of the namespace. A server that does not know them has none.
async fn definitions(client: &Client, namespace: &str) -> kube::Result<Vec<Value>> {
    let mut found = Vec::new();
    let own = (namespace != SYSTEM_NAMESPACE).then_some(namespace);
    for namespace in [Some(SYSTEM_NAMESPACE), own].into_iter().flatten() {
        for kind in DefinitionKind::ALL {
            let gvk = GroupVersionKind::gvk(oam::GROUP, "v1beta1", kind.object_kind());
            let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural());
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), namespace, &resource);
            let listed = match api.list(&ListParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => continue,
                listed => listed?,
            };
            for object in listed.items {
                let mut object = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
                // Objects in lists do not say what they are.
                object["kind"] = kind.object_kind().into();
                found.push(object);
            }
        }
    }
    Ok(found)
}

/// Types by kind and name, each as an application of the namespace finds it.
#[derive(Debug, Default)]
pub(crate) struct Types(BTreeMap<(DefinitionKind, String), Type>);

/// A type and where it comes from.
#[derive(Debug)]
pub(crate) struct Type {
    /// The definition.
    pub(crate) definition: Arc<Definition>,
    /// The namespace of the definition; none if it is built in.
    pub(crate) namespace: Option<String>,
}

impl Types {
    /// The types that need no hub.
    pub(crate) fn built_in() -> Self {
        let found = builtin::sources()
            .filter_map(|source| Some((source.kind, builtin::find(source.kind, source.name)?)));
        let entries = found.map(|(kind, definition)| {
            let built_in = Type {
                definition: definition.clone(),
                namespace: None,
            };
            ((kind, definition.type_name.clone()), built_in)
        });
        Self(entries.collect())
    }

    /// Adds a definition of a hub, in place of another one of the same kind and name; not where it says what the built-in one
    /// says, as `bellwether definitions` writes it.
    pub(crate) fn insert(&mut self, object: Value) {
        let kind = object["kind"].as_str();
        let Some(kind) = kind.and_then(DefinitionKind::from_object_kind) else {
            return;
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let name = name.to_owned();
        let key = (kind, name.clone());
        let is_same = |known: &Type| known.definition.object["spec"] == object["spec"];
        if self.0.get(&key).is_some_and(is_same) {
            return;
        }
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        let definition = Definition::new(kind, name, object);
        let own = Type {
            definition,
            namespace,
        };
        self.0.insert(key, own);
    }

    /// Types of a kind, or all of them, by kind and name.
    pub(crate) fn of(&self, wanted: Option<DefinitionKind>) -> impl Iterator<Item = &Type> {
        let all = self.0.iter();
        all.filter(move |((kind, _), _)| wanted.is_none_or(|wanted| wanted == *kind))
            .map(|(_, found)| found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, namespace: &str, name: &str, template: &str) -> Value {
        json!({
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"schematic": {"cue": {"template": template}}},
        })
    }

    #[test]
    fn definitions_of_a_hub_take_the_place_of_others_of_their_name() {
        let mut types = Types::built_in();
        let count = types.of(Some(DefinitionKind::Trait)).count();
        types.insert(object(
            "TraitDefinition",
            "vela-system",
            "greeting",
            "patch: {}",
        ));
        types.insert(object("TraitDefinition", "shop", "scaler", "patch: {}"));
        types.insert(object("ConfigMap", "shop", "other", ""));
        let of = |name: &str| {
            types
                .of(Some(DefinitionKind::Trait))
                .find(|found| found.definition.type_name == name)
                .and_then(|found| found.namespace.clone())
        };
        assert_eq!(types.of(Some(DefinitionKind::Trait)).count(), count + 1);
        assert_eq!(of("greeting").as_deref(), Some("vela-system"));
        assert_eq!(of("scaler").as_deref(), Some("shop"));
        assert_eq!(of("gateway"), None);
    }

    #[test]
    fn a_copy_of_a_built_in_definition_counts_as_built_in() {
        let mut types = Types::built_in();
        let mut copy = builtin::find(DefinitionKind::Trait, "scaler")
            .unwrap()
            .object
            .clone();
        copy["metadata"]["resourceVersion"] = json!("7");
        types.insert(copy);
        let found = types
            .of(None)
            .find(|found| found.definition.type_name == "scaler");
        assert_eq!(found.unwrap().namespace, None);
    }
}

//! Whose an object is: the ApplicationConfiguration is its owner where an owner can be named.

use serde_json::{Value, json};

/// The ApplicationConfiguration that objects belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationOwner {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its UID.
    pub uid: String,
}

impl ConfigurationOwner {
    /// Returns true if an object can refer to it as its owner: owners are in the same namespace.
    pub fn can_own(&self, object: &Value) -> bool {
        object["metadata"]["namespace"] == *self.namespace
    }

    /// Makes an object refer to it as its controller, if it can.
    pub fn claim(&self, object: &mut Value) {
        let can_own = self.can_own(object);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("ownerReferences");
            if can_own {
                metadata.insert("ownerReferences".to_owned(), json!([self.reference()]));
            }
        }
    }

    fn reference(&self) -> Value {
        json!({
            "apiVersion": "core.oam.dev/v1alpha2",
            "kind": "ApplicationConfiguration",
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// Returns why an object cannot be written: somebody else controls it.
    pub fn refusal(&self, live: &Value) -> Option<String> {
        let references = live["metadata"]["ownerReferences"].as_array();
        let mut references = references.into_iter().flatten();
        let controller = references.find(|reference| reference["controller"] == true)?;
        let is_other = controller["uid"] != *self.uid;
        is_other.then(|| format!("existing object is not controlled by UID {:?}", self.uid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> ConfigurationOwner {
        ConfigurationOwner {
            name: "shop".into(),
            namespace: "market".into(),
            uid: "u1".into(),
        }
    }

    #[test]
    fn only_objects_of_the_same_namespace_have_it_as_their_owner() {
        let claimed = |mut object: Value| {
            owner().claim(&mut object);
            object["metadata"]["ownerReferences"][0]["uid"].clone()
        };
        assert_eq!(claimed(json!({"metadata": {"namespace": "market"}})), "u1");
        assert_eq!(
            claimed(json!({"metadata": {"namespace": "other"}})),
            Value::Null
        );
        assert_eq!(claimed(json!({"metadata": {"name": "node"}})), Value::Null);
    }

    #[test]
    fn what_somebody_else_controls_is_not_touched() {
        let check = |references: Value, expected: Option<&str>| {
            let live = json!({"metadata": {"ownerReferences": references}});
            assert_eq!(owner().refusal(&live).as_deref(), expected, "{live}");
        };
        let refusal = "existing object is not controlled by UID \"u1\"";
        check(Value::Null, None);
        check(json!([{"uid": "u1", "controller": true}]), None);
        check(json!([{"uid": "u2"}]), None);
        check(json!([{"uid": "u2", "controller": true}]), Some(refusal));
    }
}

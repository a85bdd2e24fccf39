//! Bindings: which requests a policy is applied to, with which parameters, and what a failure does.

use bellwether_json::label::LabelSelector;
use serde_json::Value;

use super::Policy;
use crate::Host;
use crate::criteria::Criteria;

/// What is done about a failed validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The request is refused.
    Deny,
    /// The client is warned.
    Warn,
    /// The audit log has it.
    Audit,
}

impl Action {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "Deny" => Some(Self::Deny),
            "Warn" => Some(Self::Warn),
            "Audit" => Some(Self::Audit),
            _ => None,
        }
    }

    /// The word in `validationActions`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// A binding of a policy.
#[derive(Debug)]
pub struct Binding {
    /// Its name.
    pub name: String,
    /// The policy that it binds.
    pub policy: String,
    pub(super) actions: Vec<Action>,
    pub(super) criteria: Criteria,
    params: Option<ParamRef>,
}

#[derive(Debug)]
struct ParamRef {
    name: String,
    namespace: String,
    selector: Option<Result<LabelSelector, String>>,
    denies_if_missing: bool,
}

impl Binding {
    /// Reads a ValidatingAdmissionPolicyBinding.
    pub fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let actions = spec["validationActions"].as_array().into_iter().flatten();
        let params = &spec["paramRef"];
        Self {
            name: text(&binding["metadata"]["name"]),
            policy: text(&spec["policyName"]),
            actions: actions
                .filter_map(Value::as_str)
                .filter_map(Action::parse)
                .collect(),
            criteria: Criteria::of_policy(&spec["matchResources"]),
            params: params.is_object().then(|| ParamRef {
                name: text(&params["name"]),
                namespace: text(&params["namespace"]),
                selector: params.get("selector").filter(|it| !it.is_null()).map(|it| {
                    LabelSelector::from_object(Some(it)).map_err(|error| error.to_string())
                }),
                denies_if_missing: params["parameterNotFoundAction"] == "Deny",
            }),
        }
    }

    /// The parameters with which the policy is evaluated, one after the other; a single null if there are
    /// none to be given. `namespace` is that of the request.
    pub(super) fn params(
        &self,
        policy: &Policy,
        namespace: &str,
        host: &dyn Host,
    ) -> Result<Vec<Value>, String> {
        let (Some((api_version, kind)), Some(params)) = (&policy.params, &self.params) else {
            return Ok(vec![Value::Null]);
        };
        // The policy was checked before: the kind exists.
        let is_namespaced = host.is_namespaced(api_version, kind).unwrap_or(false);
        let namespace = match (is_namespaced, &*params.namespace, namespace) {
            (true, "", "") => {
                return Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned());
            }
            (true, "", own) => own,
            (true, named, _) => named,
            (false, "", _) => "",
            (false, _, _) => {
                return Err(
                    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                        .to_owned(),
                );
            }
        };
        let found: Vec<Value> = match &params.selector {
            None => {
                let found = host.object(api_version, kind, namespace, &params.name);
                found.into_iter().collect()
            }
            Some(selector) => {
                let selector = selector.as_ref().map_err(Clone::clone)?;
                let all = host.objects(api_version, kind, namespace).into_iter();
                all.filter(|object| selector.matches_object(object))
                    .collect()
            }
        };
        if found.is_empty() && params.denies_if_missing {
            let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
            return Err(why.to_owned());
        }
        Ok(found)
    }
}

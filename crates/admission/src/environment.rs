//! What expressions of webhooks and policies may use, and what they may cost.

use bellwether_cel::{
    AbstractType, AccessCheck, Authorization, Authorizer, Budget, Env, EnvBuilder, EvalError,
    LibrarySet, Program, Stage, Type, Value as CelValue, Vars,
};
use serde_json::Value;

/// What all expressions over one request may cost together.
const TOTAL_COST: u64 = 10_000_000;

/// What match conditions over one request may cost together.
const CONDITIONS_COST: u64 = 2_500_000;

/// What one expression may cost.
const CALL_COST: u64 = 1_000_000;

/// What is said when there is no budget left.
pub(crate) const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no \
    further validation rules will be run";

/// Says that expressions cost more than the caller would spend here, though less than Kubernetes allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooCostly;

/// What expressions may cost here; anything beyond is [`TooCostly`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostLimit(pub u64);

impl CostLimit {
    /// As much as Kubernetes allows.
    pub const NONE: Self = Self(u64::MAX);

    pub(crate) fn total(self) -> Spending {
        self.spending(TOTAL_COST)
    }

    pub(crate) fn conditions(self) -> Spending {
        self.spending(CONDITIONS_COST)
    }

    fn spending(self, most: u64) -> Spending {
        Spending {
            budget: Budget::new(CALL_COST.min(self.0), most.min(self.0)),
            is_lowered: self.0 < most,
        }
    }
}

/// A budget, and whether it is smaller than Kubernetes'.
pub(crate) struct Spending {
    pub(crate) budget: Budget,
    is_lowered: bool,
}

/// Why an expression has no value.
pub(crate) enum Stopped {
    /// It failed; the text says why.
    Failed(String),
    /// The budget of all expressions is used up.
    OutOfBudget,
    /// It costs more than is to be spent here.
    TooCostly,
}

impl Spending {
    pub(crate) fn evaluate<'a>(
        &mut self,
        program: &'a Program,
        vars: &Vars<'a>,
    ) -> Result<CelValue<'a>, Stopped> {
        program
            .evaluate(vars, &mut self.budget)
            .map_err(|error| match error {
                error if error.is_over_budget() && self.is_lowered => Stopped::TooCostly,
                EvalError::BudgetExceeded => Stopped::OutOfBudget,
                error => Stopped::Failed(error.to_string()),
            })
    }
}

/// What expressions see of a request.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `object`: what is written, or null.
    pub object: &'a Value,
    /// `oldObject`: what was there before, or null.
    pub old_object: &'a Value,
    /// `request`: see [`crate::Attributes::to_request`].
    pub request: &'a Value,
    /// `namespaceObject`: the namespace, or null.
    pub namespace: &'a Value,
    /// `params`: the parameters, or null.
    pub params: &'a Value,
    /// `authorizer`: decides what the sender of the request may do.
    pub authorizer: &'a dyn Authorizer,
    /// `authorizer.requestResource`: what the request is about.
    pub access: AccessCheck<'a>,
}

impl<'a> Inputs<'a> {
    pub(crate) fn vars(&self) -> Vars<'a> {
        Vars::new()
            .json("object", self.object)
            .json("oldObject", self.old_object)
            .json("request", self.request)
            .json("namespaceObject", self.namespace)
            .json("params", self.params)
            .value(AUTHORIZER, Authorization::authorizer(self.authorizer))
            .value(
                REQUEST_RESOURCE,
                Authorization::request_resource(self.authorizer, &self.access),
            )
    }
}

/// The variable that decides what the sender of a request may do.
const AUTHORIZER: &str = "authorizer";

/// The variable that decides about what a request is about.
const REQUEST_RESOURCE: &str = "authorizer.requestResource";

/// What an expression sees of the authorizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    /// Nothing: messages are only words.
    Hidden,
    /// `authorizer`, as where Kubernetes compares expressions with schemas.
    Plain,
    /// `authorizer` and `authorizer.requestResource`.
    Full,
}

/// Declares what every expression sees; `params` only where there are parameters.
pub(crate) fn builder(has_params: bool, authority: Authority) -> EnvBuilder {
    let mut builder = Env::builder()
        .libraries(LibrarySet::KUBERNETES)
        .variable("object", Type::Dyn)
        .variable("oldObject", Type::Dyn)
        .variable("namespaceObject", namespace_type())
        .variable("request", request_type());
    if authority != Authority::Hidden {
        builder = builder.variable(AUTHORIZER, Type::Abstract(AbstractType::Authorizer));
    }
    if authority == Authority::Full {
        let of = Type::Abstract(AbstractType::ResourceCheck);
        builder = builder.variable(REQUEST_RESOURCE, of);
    }
    if has_params {
        builder.variable("params", Type::Dyn)
    } else {
        builder
    }
}

/// Compiles an expression whose value has one of some types.
pub(crate) fn compile(env: &Env, expression: &str, types: &[Type]) -> Result<Program, String> {
    let program = env
        .compile(expression)
        .map_err(|errors| match errors.stage() {
            Stage::Compile => format!("compilation failed: {errors}"),
            Stage::Program => format!("program instantiation failed: {errors}"),
        })?;
    let found = program.output_type();
    if types.contains(found) {
        return Ok(program);
    }
    match types {
        [only] => Err(format!("must evaluate to {only} but got {found}")),
        several => {
            let names: Vec<String> = several.iter().map(type_name).collect();
            let names = names.join(" ");
            Err(format!("must evaluate to one of [{names}] but got {found}"))
        }
    }
}

/// The name of a type in a list of types.
fn type_name(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        other => other.to_string(),
    }
}

fn fields<const N: usize>(fields: [(&str, Type); N]) -> impl Iterator<Item = (String, Type)> {
    fields.map(|(name, of)| (name.to_owned(), of)).into_iter()
}

fn texts(names: &[&str]) -> Vec<(String, Type)> {
    let texts = names.iter();
    texts
        .map(|name| ((*name).to_owned(), Type::String))
        .collect()
}

fn request_type() -> Type {
    let names = |name: &str, last: &str| {
        Type::object(
            format!("kubernetes.{name}"),
            texts(&["group", "version", last]),
        )
    };
    let kind = names("GroupVersionKind", "kind");
    let resource = names("GroupVersionResource", "resource");
    let strings = Type::list(Type::String);
    let user = Type::object(
        "kubernetes.UserInfo",
        fields([
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", strings.clone()),
            ("extra", Type::map(Type::String, strings)),
        ]),
    );
    Type::object(
        "kubernetes.AdmissionRequest",
        fields([
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Type::String),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ]),
    )
}

fn namespace_type() -> Type {
    let labels = || Type::map(Type::String, Type::String);
    let metadata = Type::object(
        "kubernetes.NamespaceMetadata",
        fields([
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", Type::String),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", Type::list(Type::String)),
        ]),
    );
    let spec = Type::object(
        "kubernetes.NamespaceSpec",
        fields([("finalizers", Type::list(Type::String))]),
    );
    let condition = Type::object(
        "kubernetes.NamespaceCondition",
        fields([
            ("status", Type::String),
            ("type", Type::String),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Type::String),
            ("reason", Type::String),
        ]),
    );
    let status = Type::object(
        "kubernetes.NamespaceStatus",
        fields([
            ("conditions", Type::list(condition)),
            ("phase", Type::String),
        ]),
    );
    Type::object(
        "kubernetes.Namespace",
        fields([("metadata", metadata), ("spec", spec), ("status", status)]),
    )
}

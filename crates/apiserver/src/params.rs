//! Query parameters: what a client may add to a request, checked as Kubernetes checks it.

use bellwether_go::url::query_unescape_bytes;
use bellwether_json::field::FieldSelector;
use bellwether_json::label::LabelSelector;
use bellwether_schema::{FieldError, FieldPath};
use serde_json::{Value, json};

use crate::status::{ApiError, Subject};

/// The parameters of a request, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query string; what cannot be decoded is an error.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, ApiError> {
        let decode = |part: &str| {
            query_unescape_bytes(part)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .ok_or_else(|| ApiError::bad_request(format!("invalid URL escape \"{part}\"")))
        };
        text.unwrap_or("")
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Ok((decode(key)?, decode(value)?))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The first value of a parameter; an empty one counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(name, _)| name == key)?;
        (!value.is_empty()).then_some(value.as_str())
    }

    /// Adds a condition to the field selector.
    pub(crate) fn select(&mut self, field: &str, value: &str) {
        let mut escaped = String::with_capacity(value.len());
        for letter in value.chars() {
            if matches!(letter, '\\' | ',' | '=') {
                escaped.push('\\');
            }
            escaped.push(letter);
        }
        let condition = format!("{field}={escaped}");
        let selector = match self.get("fieldSelector") {
            Some(known) => format!("{known},{condition}"),
            None => condition,
        };
        self.0.retain(|(name, _)| name != "fieldSelector");
        self.0.push(("fieldSelector".to_owned(), selector));
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Whether a flag is set; `?watch` and `?watch=1` are.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, ApiError> {
        let Some((_, value)) = self.0.iter().find(|(name, _)| name == key) else {
            return Ok(None);
        };
        match value.as_str() {
            "" | "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Some(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Some(false)),
            other => Err(ApiError::bad_request(format!(
                "strconv.ParseBool: parsing \"{other}\": invalid syntax"
            ))),
        }
    }

    /// Selects one object by its name, besides what is selected already.
    pub(crate) fn select_name(&mut self, name: &str) {
        let term = format!("metadata.name={name}");
        match self.0.iter_mut().find(|(key, _)| key == "fieldSelector") {
            Some((_, selector)) if !selector.is_empty() => {
                selector.push(',');
                selector.push_str(&term);
            }
            Some((_, selector)) => *selector = term,
            None => self.0.push(("fieldSelector".to_owned(), term)),
        }
    }

    /// The number that a parameter says.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, ApiError> {
        self.get(key)
            .map(|text| {
                text.parse().map_err(|_| {
                    ApiError::bad_request(format!(
                        "strconv.ParseInt: parsing \"{text}\": invalid syntax"
                    ))
                })
            })
            .transpose()
    }
}

/// How a list relates to the revision that the client names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RevisionMatch {
    /// The state at exactly that revision.
    Exact,
    /// That state or a later one.
    NotOlderThan,
}

/// Options of list and watch.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    /// Which labels objects must have.
    pub labels: LabelSelector,
    /// Which field values objects must have.
    pub fields: FieldSelector,
    /// `None` when unset, which means the most recent state; 0 means any.
    pub revision: Option<u64>,
    /// How `revision` is meant.
    pub revision_match: Option<RevisionMatch>,
    /// At most so many objects per answer; 0 means all.
    pub limit: usize,
    /// Where the previous page ended.
    pub continue_token: Option<String>,
    /// Whether a watch wants bookmarks.
    pub bookmarks: bool,
    /// Whether a watch begins with the current state.
    pub send_initial_events: Option<bool>,
    /// How long a watch may last.
    pub timeout_seconds: Option<u64>,
}

impl ListOptions {
    /// Reads and checks the options of a list, or of a watch.
    pub(crate) fn parse(query: &Query, watch: bool) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or(""))
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or(""))
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let limit = query.number("limit")?.unwrap_or(0).max(0);
        let timeout = query
            .number("timeoutSeconds")?
            .filter(|seconds| *seconds > 0);
        let options = Self {
            labels,
            fields,
            revision: None,
            revision_match: None,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.get("continue").map(str::to_owned),
            bookmarks: query.flag("allowWatchBookmarks")?.unwrap_or(false),
            send_initial_events: query.flag("sendInitialEvents")?,
            timeout_seconds: timeout.and_then(|seconds| u64::try_from(seconds).ok()),
        };
        options.with_revision(query, watch)
    }

    fn with_revision(mut self, query: &Query, watch: bool) -> Result<Self, ApiError> {
        let revision = query.get("resourceVersion");
        let matching = query.get("resourceVersionMatch");
        let errors = self.revision_errors(revision, matching, watch);
        if !errors.is_empty() {
            return Err(invalid_options("ListOptions", &errors));
        }
        self.revision_match = match matching {
            Some("Exact") => Some(RevisionMatch::Exact),
            Some(_) => Some(RevisionMatch::NotOlderThan),
            None => None,
        };
        self.revision = revision.map(parse_revision).transpose()?;
        Ok(self)
    }

    fn revision_errors(
        &self,
        revision: Option<&str>,
        matching: Option<&str>,
        watch: bool,
    ) -> Vec<FieldError> {
        let path = FieldPath::new("resourceVersionMatch");
        let mut errors = Vec::new();
        if self.send_initial_events.is_some() {
            if !watch {
                let path = FieldPath::new("sendInitialEvents");
                errors.push(FieldError::forbidden(
                    &path,
                    "sendInitialEvents is forbidden for list",
                ));
            } else if matching.is_none() {
                errors.push(FieldError::forbidden(
                    &path,
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
        }
        let Some(matching) = matching else {
            return errors;
        };
        if watch {
            if self.send_initial_events.is_none() {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if matching != "NotOlderThan" {
                errors.push(FieldError::not_supported(
                    &path,
                    matching,
                    &["NotOlderThan"],
                ));
            }
            return errors;
        }
        if revision.is_none() {
            errors.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if self.continue_token.is_some() {
            errors.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            let known = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(&path, matching, &known));
        }
        if matching == "Exact" && revision == Some("0") {
            errors.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
        errors
    }
}

/// Reads a `resourceVersion` that a client sends.
pub(crate) fn parse_revision(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
        ))
    })
}

/// What happens to fields that nobody knows, and to those that occur twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are dropped in silence.
    Ignore,
    /// They are dropped, and the answer carries a warning.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// Options of create, update and patch.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Everything but the write itself happens.
    pub dry_run: bool,
    /// Who owns the written fields; empty to derive it from the user agent.
    pub field_manager: String,
    /// How unknown fields are treated.
    pub field_validation: FieldValidation,
    /// Whether an apply takes fields from others.
    pub force: Option<bool>,
}

impl WriteOptions {
    /// Reads and checks the options; `kind` is what Kubernetes calls them in errors.
    pub(crate) fn parse(query: &Query, kind: &str) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let field_manager = query.get("fieldManager").unwrap_or("").to_owned();
        let path = FieldPath::new("fieldManager");
        if field_manager.len() > 128 {
            errors.push(FieldError::too_long(&path, 128));
        }
        if field_manager.chars().any(char::is_control) {
            errors.push(FieldError::invalid(
                &path,
                field_manager.as_str(),
                "should only contain printable characters",
            ));
        }
        let field_validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let known = ["", "Ignore", "Strict", "Warn"];
                let path = FieldPath::new("fieldValidation");
                errors.push(FieldError::not_supported(&path, other, &known));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(invalid_options(kind, &errors));
        }
        Ok(Self {
            dry_run,
            field_manager,
            field_validation,
            force: query.flag("force")?,
        })
    }

    /// The rules between apply patches and the others.
    pub(crate) fn check_patch(&self, apply: bool) -> Result<(), ApiError> {
        let mut errors = Vec::new();
        if apply && self.field_manager.is_empty() {
            let path = FieldPath::new("fieldManager");
            errors.push(FieldError::required(&path, "is required for apply patch"));
        }
        if !apply && self.force.is_some() {
            let path = FieldPath::new("force");
            errors.push(FieldError::forbidden(
                &path,
                "may not be specified for non-apply patch",
            ));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(invalid_options("PatchOptions", &errors))
        }
    }
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<FieldError>) -> bool {
    let mut dry_run = false;
    for value in values {
        if value == "All" {
            dry_run = true;
        } else {
            let path = FieldPath::new("dryRun");
            errors.push(FieldError::not_supported(&path, json!([value]), &["All"]));
        }
    }
    dry_run
}

/// What becomes of the objects that a deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They lose their owner and stay.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

impl Propagation {
    /// The word in `propagationPolicy`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

/// Options of delete, from the body and the query.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    /// Everything but the deletion itself happens.
    pub dry_run: bool,
    /// How long a pod may take to end.
    pub grace_period_seconds: Option<i64>,
    /// What becomes of dependents; the resource has a default.
    pub propagation: Option<Propagation>,
    /// The object must have this uid.
    pub uid: Option<String>,
    /// The object must have this revision.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// The options as admission sees them.
    pub(crate) fn to_json(&self) -> Value {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(seconds) = self.grace_period_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        for (field, value) in [
            ("uid", &self.uid),
            ("resourceVersion", &self.resource_version),
        ] {
            if let Some(value) = value {
                options["preconditions"][field] = value.as_str().into();
            }
        }
        if let Some(propagation) = self.propagation {
            options["propagationPolicy"] = propagation.as_str().into();
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Reads and checks the options; those in the body win over those in the query.
    pub(crate) fn parse(query: &Query, body: &Value) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let in_body = body["dryRun"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let mut options = Self {
            dry_run: dry_run(query.all("dryRun"), &mut errors) | dry_run(in_body, &mut errors),
            grace_period_seconds: match body["gracePeriodSeconds"].as_i64() {
                Some(seconds) => Some(seconds),
                None => query.number("gracePeriodSeconds")?,
            },
            propagation: None,
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
        };
        let orphan = match body["orphanDependents"].as_bool() {
            Some(orphan) => Some(orphan),
            None => query.flag("orphanDependents")?,
        };
        let policy = body["propagationPolicy"]
            .as_str()
            .or_else(|| query.get("propagationPolicy"));
        let path = FieldPath::new("propagationPolicy");
        if policy.is_some() && orphan.is_some() {
            errors.push(FieldError::invalid(
                &path,
                policy.unwrap_or_default(),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        options.propagation = match (policy, orphan) {
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (None, None) => None,
            (Some(other), _) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, other, &known));
                None
            }
        };
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(invalid_options("DeleteOptions", &errors))
        }
    }
}

fn invalid_options(kind: &str, errors: &[FieldError]) -> ApiError {
    ApiError::invalid(
        Subject {
            group: "meta.k8s.io",
            resource: kind,
        },
        "",
        errors,
    )
}

//! One rule of a role: what it allows, and what it covers of another.

use serde_json::Value;

use bellwether_api::admission::Attributes;

/// One rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PolicyRule {
    /// Verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups, or `*`.
    pub api_groups: Vec<String>,
    /// Resources such as `pods`, `pods/log`, `*`, `*/scale`.
    pub resources: Vec<String>,
    /// Names of objects; empty for all.
    pub resource_names: Vec<String>,
    /// Paths such as `/healthz` or `/metrics/*`.
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// Reads the `rules` of a role.
    pub(crate) fn list(rules: &Value) -> Vec<Self> {
        let rules = rules.as_array().map_or(&[][..], Vec::as_slice);
        rules.iter().map(Self::from_json).collect()
    }

    fn from_json(rule: &Value) -> Self {
        let texts = |key: &str| {
            let items = rule[key].as_array().into_iter().flatten();
            let items = items.filter_map(Value::as_str).map(str::to_owned);
            let mut texts: Vec<String> = items.collect();
            // Rules are many, and seldom change.
            texts.shrink_to_fit();
            texts
        };
        Self {
            verbs: texts("verbs"),
            api_groups: texts("apiGroups"),
            resources: texts("resources"),
            resource_names: texts("resourceNames"),
            non_resource_urls: texts("nonResourceURLs"),
        }
    }

    /// Whether the rule covers the request; `full_resource` is its resource with the subresource.
    pub(crate) fn allows(&self, wanted: &Attributes<'_>, full_resource: &str) -> bool {
        if !has(&self.verbs, wanted.verb) {
            return false;
        }
        if wanted.resource.is_empty() {
            return self
                .non_resource_urls
                .iter()
                .any(|pattern| path_matches(pattern, wanted.path));
        }
        has(&self.api_groups, wanted.group)
            && self.allows_resource(wanted, full_resource)
            && (self.resource_names.is_empty()
                || self.resource_names.iter().any(|name| name == wanted.name))
    }

    fn allows_resource(&self, wanted: &Attributes<'_>, full_resource: &str) -> bool {
        self.resources.iter().any(|pattern| {
            pattern == "*"
                || pattern == full_resource
                || (!wanted.subresource.is_empty()
                    && pattern.strip_prefix("*/") == Some(wanted.subresource))
        })
    }

    /// Whether everything that `other` allows is allowed by this rule; `other` names one of each.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let verbs = other.verbs.iter().all(|verb| has(&self.verbs, verb));
        if !other.non_resource_urls.is_empty() {
            let paths = &other.non_resource_urls;
            return verbs && paths.iter().all(|path| self.covers_path(path));
        }
        let names = self.resource_names.is_empty()
            || (!other.resource_names.is_empty()
                && other
                    .resource_names
                    .iter()
                    .all(|name| self.resource_names.contains(name)));
        let mut groups = other.api_groups.iter();
        let mut resources = other.resources.iter();
        verbs
            && names
            && groups.all(|group| has(&self.api_groups, group))
            && resources.all(|resource| self.covers_resource(resource))
    }

    fn covers_resource(&self, wanted: &str) -> bool {
        let subresource = wanted.split_once('/').map(|(_, subresource)| subresource);
        self.resources.iter().any(|own| {
            own == "*"
                || own == wanted
                || (subresource.is_some() && own.strip_prefix("*/") == subresource)
        })
    }

    fn covers_path(&self, wanted: &str) -> bool {
        self.non_resource_urls
            .iter()
            .any(|own| own == wanted || (own.ends_with('*') && path_matches(own, wanted)))
    }

    /// The rule as Kubernetes writes it in refusals.
    pub(super) fn describe(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| format!("{name}:{}", quoted(values)))
            .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// Texts as Go prints a slice of them.
pub(super) fn quoted(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

fn has(allowed: &[String], wanted: &str) -> bool {
    allowed.iter().any(|word| word == "*" || word == wanted)
}

fn path_matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}

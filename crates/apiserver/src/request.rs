//! What a request asks for, read from its method and path.

use bellwether_go::url::path_unescape_bytes;
use http::Method;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// An object or a collection.
    Resource(ResourcePath),
    /// Anything else, such as discovery and health; the path below the cluster.
    Path(String),
}

/// The parts of `/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace, if the path names one.
    pub namespace: Option<String>,
    /// Plural resource name.
    pub resource: String,
    /// Name of the object, if the path names one.
    pub name: Option<String>,
    /// Subresource such as `status`.
    pub subresource: Option<String>,
    /// Whether it is written `…/VERSION/watch/…`, the old way to ask for a watch.
    pub watch: bool,
}

/// What is to be done, in the words that access rules use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// The word for access rules and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// The verb that a word names.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        const ALL: [Verb; 8] = [
            Verb::Get,
            Verb::List,
            Verb::Watch,
            Verb::Create,
            Verb::Update,
            Verb::Patch,
            Verb::Delete,
            Verb::DeleteCollection,
        ];
        ALL.into_iter().find(|verb| verb.as_str() == word)
    }

    /// The verb of a method on an object (`on_item`) or a collection; `None` if there is none.
    pub(crate) fn of(method: &Method, on_item: bool, watch: bool) -> Option<Self> {
        Some(match (method, on_item) {
            (&Method::GET | &Method::HEAD, false) if watch => Self::Watch,
            (&Method::GET | &Method::HEAD, true) => Self::Get,
            (&Method::GET | &Method::HEAD, false) => Self::List,
            (&Method::POST, false) => Self::Create,
            (&Method::PUT, true) => Self::Update,
            (&Method::PATCH, true) => Self::Patch,
            (&Method::DELETE, true) => Self::Delete,
            (&Method::DELETE, false) => Self::DeleteCollection,
            _ => return None,
        })
    }
}

impl ResourcePath {
    /// Returns true for namespaces themselves, which roles of the namespace may grant.
    pub(crate) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }
}

impl Target {
    /// Takes a path apart. Nothing is looked up, so the resource need not exist.
    pub(crate) fn parse(path: &str) -> Self {
        Self::resource(path).map_or_else(|| Self::Path(path.to_owned()), Self::Resource)
    }

    fn resource(path: &str) -> Option<ResourcePath> {
        let mut parts = path.split('/').skip(1);
        let (group, version) = match parts.next()? {
            "api" => (String::new(), parts.next()?),
            "apis" => (parts.next()?.to_owned(), parts.next()?),
            _ => return None,
        };
        let rest = parts.map(decode).collect::<Option<Vec<_>>>()?;
        let rest = rest.iter().map(String::as_str).collect::<Vec<_>>();
        if version.is_empty() || rest.iter().any(|part| part.is_empty()) {
            return None;
        }
        let (watch, rest) = match rest.as_slice() {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let mut found = ResourcePath {
            group,
            version: version.to_owned(),
            watch,
            ..ResourcePath::default()
        };
        let words: &[&str] = match rest {
            ["namespaces", namespace, "status"] => {
                return Some(ResourcePath {
                    resource: "namespaces".into(),
                    name: Some((*namespace).into()),
                    subresource: Some("status".into()),
                    ..found
                });
            }
            ["namespaces", namespace, "finalize"] if found.group.is_empty() => {
                return Some(ResourcePath {
                    resource: "namespaces".into(),
                    name: Some((*namespace).into()),
                    subresource: Some("finalize".into()),
                    ..found
                });
            }
            ["namespaces", namespace, words @ ..] if !words.is_empty() => {
                found.namespace = Some((*namespace).to_owned());
                words
            }
            words => words,
        };
        let (resource, words) = words.split_first()?;
        (*resource).clone_into(&mut found.resource);
        match words {
            [] => {}
            [name] => found.name = Some((*name).to_owned()),
            [name, subresource @ ..] => {
                found.name = Some((*name).to_owned());
                found.subresource = Some(subresource.join("/"));
            }
        }
        Some(found)
    }
}

/// Decodes a segment of a path; `None` if it is malformed, is not UTF-8, or would put a slash into a name.
pub(crate) fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let decoded = String::from_utf8(path_unescape_bytes(text).ok()?).ok()?;
    (!decoded.contains('/')).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, want: Option<[&str; 6]>) {
        let found = match Target::parse(path) {
            Target::Resource(found) => Some(found),
            Target::Path(_) => None,
        };
        let want = want.map(|[group, version, namespace, resource, name, subresource]| {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            ResourcePath {
                group: group.into(),
                version: version.into(),
                namespace: some(namespace),
                resource: resource.into(),
                name: some(name),
                subresource: some(subresource),
                watch: path.contains("/watch/"),
            }
        });
        assert_eq!(found, want, "{path}");
    }

    #[test]
    fn paths_of_objects_and_collections_are_taken_apart() {
        check(
            "/api/v1/namespaces",
            Some(["", "v1", "", "namespaces", "", ""]),
        );
        check(
            "/api/v1/namespaces/x",
            Some(["", "v1", "", "namespaces", "x", ""]),
        );
        check(
            "/api/v1/namespaces/x/status",
            Some(["", "v1", "", "namespaces", "x", "status"]),
        );
        check(
            "/api/v1/namespaces/x/pods",
            Some(["", "v1", "x", "pods", "", ""]),
        );
        check(
            "/api/v1/namespaces/x/pods/p/log",
            Some(["", "v1", "x", "pods", "p", "log"]),
        );
        check(
            "/apis/apps/v1/deployments",
            Some(["apps", "v1", "", "deployments", "", ""]),
        );
        check(
            "/apis/apps/v1/namespaces/x/deployments/d/scale",
            Some(["apps", "v1", "x", "deployments", "d", "scale"]),
        );
        check(
            "/api/v1/watch/namespaces/x/pods/p",
            Some(["", "v1", "x", "pods", "p", ""]),
        );
        check(
            "/apis/apps/v1/watch/deployments",
            Some(["apps", "v1", "", "deployments", "", ""]),
        );
        check(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            Some([
                "rbac.authorization.k8s.io",
                "v1",
                "",
                "clusterroles",
                "system:node",
                "",
            ]),
        );
    }

    #[test]
    fn everything_else_is_a_plain_path() {
        for path in [
            "/",
            "/api",
            "/apis",
            "/apis/apps",
            "/apis/apps/v1",
            "/healthz",
            "/api//pods",
        ] {
            check(path, None);
        }
        check("/api/v1/namespaces/a%2Fb/pods", None);
    }
}

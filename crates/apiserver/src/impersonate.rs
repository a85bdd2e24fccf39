//! Acting as somebody else: asked for in headers, allowed for each part of the other's identity.

use std::collections::BTreeMap;

use bellwether_go::url::path_unescape_bytes;
use http::{HeaderMap, HeaderValue};

use crate::access::{Attributes, Identity, account_groups};
use crate::cluster::Cluster;
use crate::status::{ApiError, Subject};

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Whom `identity` acts as in this request; `None` if nobody else.
pub(crate) fn impersonate(
    cluster: &Cluster,
    identity: &Identity,
    headers: &HeaderMap,
) -> Result<Option<Identity>, ApiError> {
    if !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return Ok(None);
    }
    let request = ImpersonationRequest::read(headers)?;
    if request.user.is_empty() {
        let asked = request.describe();
        if asked.is_empty() {
            return Ok(None);
        }
        return Err(ApiError::bad_request(format!(
            "requested [{}] without impersonating a user",
            asked.join(" ")
        )));
    }
    for wanted in request.permissions() {
        if !cluster.authorizer().allows(identity, &wanted) {
            let subject = Subject {
                group: wanted.group,
                resource: wanted.resource,
            };
            let why = wanted.refusal(&identity.user);
            return Err(ApiError::forbidden(subject, wanted.name, &why));
        }
    }
    Ok(Some(request.into_identity()))
}

/// The other's identity, as the headers describe it.
#[derive(Debug, Default)]
struct ImpersonationRequest {
    user: String,
    uid: Option<String>,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl ImpersonationRequest {
    fn read(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut request = Self::default();
        if let Some(value) = headers.get(USER) {
            request.user = text(value)?;
        }
        request.uid = headers.get(UID).map(text).transpose()?;
        for value in headers.get_all(GROUP) {
            request.groups.push(text(value)?);
        }
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(EXTRA) {
                // What cannot be decoded is the key itself.
                let decoded = path_unescape_bytes(key).ok();
                let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
                let key = decoded.unwrap_or_else(|| key.to_owned());
                request.extra.entry(key).or_default().push(text(value)?);
            }
        }
        Ok(request)
    }

    /// Namespace and name, if the other is a service account.
    fn account(&self) -> Option<(&str, &str)> {
        let rest = self.user.strip_prefix("system:serviceaccount:")?;
        rest.split_once(':')
    }

    /// What it takes.
    fn permissions(&self) -> Vec<Attributes<'_>> {
        let part = Attributes {
            verb: "impersonate",
            ..Attributes::default()
        };
        let mut wanted = vec![match self.account() {
            Some((namespace, name)) => Attributes {
                resource: "serviceaccounts",
                namespace,
                name,
                ..part
            },
            None => Attributes {
                resource: "users",
                name: &self.user,
                ..part
            },
        }];
        wanted.extend(self.groups.iter().map(|name| Attributes {
            resource: "groups",
            name,
            ..part
        }));
        wanted.extend(self.uid.iter().map(|name| Attributes {
            group: AUTHENTICATION,
            resource: "uids",
            name,
            ..part
        }));
        for (key, values) in &self.extra {
            wanted.extend(values.iter().map(|name| Attributes {
                group: AUTHENTICATION,
                resource: "userextras",
                subresource: key,
                name,
                ..part
            }));
        }
        wanted
    }

    /// What is asked for besides a user, as Go prints references to objects.
    fn describe(&self) -> Vec<String> {
        let groups = self.groups.iter();
        let groups = groups.map(|group| format!("{{Group  {group}    }}"));
        let extra = self.extra.iter().flat_map(|(key, values)| {
            let values = values.iter();
            values.map(move |value| format!("{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}"))
        });
        let uid = self.uid.as_ref();
        let uid = uid.map(|uid| format!("{{UID  {uid}  {AUTHENTICATION}/v1  }}"));
        groups.chain(extra).chain(uid).collect()
    }

    fn into_identity(self) -> Identity {
        let mut groups = self.groups.clone();
        if let (Some((namespace, _)), true) = (self.account(), groups.is_empty()) {
            groups = account_groups(namespace).into();
        }
        let identity = if self.user == ANONYMOUS {
            let nobody = Identity::anonymous();
            groups.retain(|group| !nobody.groups.contains(group));
            groups.extend(nobody.groups.iter().cloned());
            Identity { groups, ..nobody }
        } else {
            Identity::authenticated(self.user, groups)
        };
        Identity {
            uid: self.uid.unwrap_or_default(),
            extra: self.extra,
            ..identity
        }
    }
}

/// A header's value. What cannot be read is refused: to pass over it would be to act as somebody
/// else than was asked for.
fn text(value: &HeaderValue) -> Result<String, ApiError> {
    let text = std::str::from_utf8(value.as_bytes());
    text.map(str::to_owned)
        .map_err(|_| ApiError::bad_request("an impersonation header is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &str)]) -> ImpersonationRequest {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        ImpersonationRequest::read(&headers).unwrap()
    }

    #[test]
    fn names_beyond_ascii_are_names() {
        let request = read(&[(USER, "jürgen"), (GROUP, "büro")]);
        let identity = request.into_identity();
        assert_eq!(identity.user, "jürgen");
        assert_eq!(identity.groups, ["büro", "system:authenticated"]);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for name in [USER, UID, GROUP, "impersonate-extra-x"] {
            let mut headers = HeaderMap::new();
            headers.append(name, HeaderValue::from_bytes(b"\xff\xfe").unwrap());
            assert_eq!(
                ImpersonationRequest::read(&headers).unwrap_err().code,
                400,
                "{name}"
            );
        }
    }

    #[test]
    fn accounts_and_nobody_get_the_groups_that_they_have() {
        let groups = |pairs: &[(&'static str, &str)]| read(pairs).into_identity().groups;
        assert_eq!(
            groups(&[(USER, "system:serviceaccount:a:b")]),
            [
                "system:serviceaccounts",
                "system:serviceaccounts:a",
                "system:authenticated"
            ]
        );
        assert_eq!(
            groups(&[(USER, "system:serviceaccount:a:b"), (GROUP, "x")]),
            ["x", "system:authenticated"]
        );
        assert_eq!(groups(&[(USER, ANONYMOUS)]), ["system:unauthenticated"]);
        assert_eq!(
            groups(&[(USER, ANONYMOUS), (GROUP, "x")]),
            ["x", "system:unauthenticated"]
        );
    }

    #[test]
    fn keys_of_extra_are_unescaped() {
        let request = read(&[
            ("impersonate-extra-acme.com%2fproject", "p"),
            ("impersonate-extra-scopes", "a"),
            ("impersonate-extra-scopes", "b"),
        ]);
        assert_eq!(request.extra["acme.com/project"], ["p"]);
        assert_eq!(request.extra["scopes"], ["a", "b"]);
        assert_eq!(request.permissions().len(), 4);
    }
}

//! The `authentication.k8s.io` and `authorization.k8s.io` groups: questions to the server, which are
//! answered and never stored.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenReview};
use k8s_openapi::api::authorization::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
};

use crate::Resource;
use crate::resource::CREATE;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

pub(crate) const TOKEN_REVIEW: Resource = Resource {
    verbs: CREATE,
    ..Resource::cluster::<TokenReview>(AUTHENTICATION, "v1", "TokenReview", "tokenreviews")
};

pub(crate) const SELF_SUBJECT_REVIEW: Resource = Resource {
    verbs: CREATE,
    ..Resource::cluster::<SelfSubjectReview>(
        AUTHENTICATION,
        "v1",
        "SelfSubjectReview",
        "selfsubjectreviews",
    )
};

pub(crate) const SUBJECT_ACCESS_REVIEW: Resource = Resource {
    verbs: CREATE,
    ..Resource::cluster::<SubjectAccessReview>(
        AUTHORIZATION,
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
    )
};

pub(crate) const LOCAL_SUBJECT_ACCESS_REVIEW: Resource = Resource {
    verbs: CREATE,
    ..Resource::namespaced::<LocalSubjectAccessReview>(
        AUTHORIZATION,
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
    )
};

pub(crate) const SELF_SUBJECT_ACCESS_REVIEW: Resource = Resource {
    verbs: CREATE,
    ..Resource::cluster::<SelfSubjectAccessReview>(
        AUTHORIZATION,
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
    )
};

pub(crate) const SELF_SUBJECT_RULES_REVIEW: Resource = Resource {
    verbs: CREATE,
    ..Resource::cluster::<SelfSubjectRulesReview>(
        AUTHORIZATION,
        "v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
    )
};

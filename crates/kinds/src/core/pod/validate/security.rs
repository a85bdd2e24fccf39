//! Security contexts of pods and containers.

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

use super::container::is_privileged;
use super::volume::descending;
use crate::check::{self, Errors};
use crate::value::{at, flag, has, int, list, text, texts};
use crate::{names, printed};

/// Longest name of a kernel parameter.
const SYSCTL_LENGTH: usize = 253;

/// Checks the security context of a pod.
pub(super) fn pod(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let context = at(spec, &["securityContext"]);
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        identity(at(context, &[field]), &path.child(field), errors);
    }
    let groups = path.child("supplementalGroups");
    for (index, group) in list(context, &["supplementalGroups"]).iter().enumerate() {
        identity(group, &groups.index(index), errors);
    }
    if flag(spec, &["hostPID"]) && flag(spec, &["shareProcessNamespace"]) {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        let path = path.child("shareProcessNamespace");
        errors.push(FieldError::invalid(&path, true, detail));
    }
    sysctls(context, &path.child("sysctls"), errors);
    choice(
        context,
        "fsGroupChangePolicy",
        &["Always", "OnRootMismatch"],
        path,
        errors,
    );
    seccomp(
        at(context, &["seccompProfile"]),
        &path.child("seccompProfile"),
        errors,
    );
    app_armor(
        at(context, &["appArmorProfile"]),
        &path.child("appArmorProfile"),
        errors,
    );
    choice(
        context,
        "supplementalGroupsPolicy",
        &["Merge", "Strict"],
        path,
        errors,
    );
}

/// Checks the security context of a container.
pub(super) fn container(
    container: &Value,
    spec: &Value,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let context = at(container, &["securityContext"]);
    if context.is_null() {
        return;
    }
    for field in ["runAsUser", "runAsGroup"] {
        identity(at(context, &[field]), &path.child(field), errors);
    }
    choice(context, "procMount", &["Default", "Unmasked"], path, errors);
    let own_users = at(spec, &["hostUsers"]) == false;
    if !own_users && text(context, &["procMount"]) == "Unmasked" {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        errors.push(FieldError::invalid(
            &path.child("procMount"),
            "Unmasked",
            detail,
        ));
    }
    seccomp(
        at(context, &["seccompProfile"]),
        &path.child("seccompProfile"),
        errors,
    );
    if at(context, &["allowPrivilegeEscalation"]) == false {
        if is_privileged(container) {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(FieldError::invalid(path, context.clone(), detail));
        }
        if texts(context, &["capabilities", "add"]).any(|name| name == "CAP_SYS_ADMIN") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.push(FieldError::invalid(path, context.clone(), detail));
        }
    }
    app_armor(
        at(context, &["appArmorProfile"]),
        &path.child("appArmorProfile"),
        errors,
    );
}

/// A user or group by number.
fn identity(value: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let most = i64::from(i32::MAX);
    if let Some(number) = value.as_i64()
        && !(0..=most).contains(&number)
    {
        errors.push(FieldError::invalid(path, number, names::between(0, most)));
    }
}

fn choice(
    context: &Value,
    field: &str,
    allowed: &[&str],
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    if has(context, &[field]) {
        check::supported(errors, &path.child(field), text(context, &[field]), allowed);
    }
}

fn seccomp(profile: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if profile.is_null() {
        return;
    }
    let kind = text(profile, &["type"]);
    let kinds = ["Localhost", "RuntimeDefault", "Unconfined"];
    check::required_choice(errors, &path.child("type"), kind, &kinds);
    let file_path = path.child("localhostProfile");
    match (kind == "Localhost", has(profile, &["localhostProfile"])) {
        (true, false) => {
            let detail = "must be set when seccomp type is Localhost";
            errors.push(FieldError::required(&file_path, detail));
        }
        (true, true) => descending(text(profile, &["localhostProfile"]), &file_path, errors),
        (false, true) => {
            let detail = "can only be set when seccomp type is Localhost";
            let fields = [
                printed::words("Type", "type"),
                printed::pointer("LocalhostProfile", "localhostProfile"),
            ];
            let value = printed::structure(profile, &fields);
            let kind = FieldErrorKind::Invalid;
            errors.push(printed::error(kind, &file_path, &value, detail));
        }
        (false, false) => {}
    }
}

fn app_armor(profile: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if profile.is_null() {
        return;
    }
    let kind = text(profile, &["type"]);
    let kinds = ["Localhost", "RuntimeDefault", "Unconfined"];
    let file_path = path.child("localhostProfile");
    let file = text(profile, &["localhostProfile"]);
    if kind == "Localhost" && file.trim().is_empty() {
        let detail = "must be set when AppArmor type is Localhost";
        errors.push(FieldError::required(&file_path, detail));
    } else if matches!(kind, "RuntimeDefault" | "Unconfined") && has(profile, &["localhostProfile"])
    {
        let detail = "can only be set when AppArmor type is Localhost";
        errors.push(FieldError::invalid(&file_path, file, detail));
    }
    check::required_choice(errors, &path.child("type"), kind, &kinds);
}

fn sysctls(context: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (index, sysctl) in list(context, &["sysctls"]).iter().enumerate() {
        let path = path.index(index);
        let path = path.child("name");
        let name = text(sysctl, &["name"]);
        let is_new = seen.insert(name);
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            let detail = format!(
                "must have at most {SYSCTL_LENGTH} characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            errors.push(FieldError::invalid(&path, name, detail));
        } else if !is_new {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= SYSCTL_LENGTH
        && name.split(['.', '/']).all(|part| {
            part.bytes()
                .all(|byte| letter(byte) || matches!(byte, b'-' | b'_'))
                && part.bytes().next().is_some_and(letter)
                && part.bytes().next_back().is_some_and(letter)
        })
}

/// Whether a mode of a file is one.
pub(super) fn file_mode(object: &Value, field: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    if has(object, &[field]) && !(0..=0o777).contains(&int(object, &[field])) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        let mode = int(object, &[field]);
        errors.push(FieldError::invalid(&path.child(field), mode, detail));
    }
}

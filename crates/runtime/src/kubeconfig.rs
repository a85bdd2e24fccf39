//! Kubeconfigs as files, read with the YAML of everything else: its errors say where, and a second
//! reader would be a megabyte of the program.

use std::path::Path;

use bellwether_json::yaml::{self, YamlError};
use kube::config::{AuthInfo, Kubeconfig, KubeconfigError as KubeError};

/// Why a text is no kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is no YAML.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// It is something else.
    #[error("not a kubeconfig: {0}")]
    Content(#[from] serde_json::Error),
    /// Its documents do not go together.
    #[error(transparent)]
    Documents(#[from] KubeError),
}

/// Reads a file. What it says of other files is relative to where it is.
pub fn read_kubeconfig(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
    let mut kubeconfig = parse_kubeconfig(&std::fs::read_to_string(path)?)?;
    if let Some(folder) = path.parent() {
        settle(&mut kubeconfig, folder);
    }
    Ok(kubeconfig)
}

/// Reads a text. Of several documents the first that says something counts.
pub fn parse_kubeconfig(text: &str) -> Result<Kubeconfig, KubeconfigError> {
    // Some editors begin a file with a mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut whole = Kubeconfig::default();
    for document in yaml::from_yaml(text)? {
        whole = whole.merge(serde_json::from_value(document)?)?;
    }
    Ok(whole)
}

/// Makes the paths that a kubeconfig names independent of where the process runs.
fn settle(kubeconfig: &mut Kubeconfig, folder: &Path) {
    let clusters = kubeconfig.clusters.iter_mut();
    for cluster in clusters.filter_map(|named| named.cluster.as_mut()) {
        settle_path(&mut cluster.certificate_authority, folder);
    }
    let users = kubeconfig.auth_infos.iter_mut();
    for user in users.filter_map(|named| named.auth_info.as_mut()) {
        settle_user(user, folder);
    }
}

fn settle_user(user: &mut AuthInfo, folder: &Path) {
    settle_path(&mut user.client_certificate, folder);
    settle_path(&mut user.client_key, folder);
    settle_path(&mut user.token_file, folder);
    if let Some(plugin) = &mut user.exec {
        // A mere name is looked for where programs are.
        let is_path = |command: &String| command.contains(std::path::MAIN_SEPARATOR);
        if plugin.command.as_ref().is_some_and(is_path) {
            settle_path(&mut plugin.command, folder);
        }
    }
}

fn settle_path(path: &mut Option<String>, folder: &Path) {
    let relative = path.as_ref().map(Path::new).filter(|it| it.is_relative());
    // A folder that is no text cannot be named in a kubeconfig; then the path stays as it is.
    if let Some(settled) = relative.and_then(|it| folder.join(it).to_str().map(str::to_owned)) {
        *path = Some(settled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
apiVersion: v1
kind: Config
current-context: edge
clusters:
- name: edge
  cluster: {server: 'https://edge:6443', certificate-authority: pki/ca.crt}
contexts:
- name: edge
  context: {cluster: edge, user: admin}
users:
- name: admin
  user:
    client-certificate: /etc/admin.crt
    client-key: admin.key
    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login}
- name: other
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login}
";

    #[test]
    fn paths_are_relative_to_the_file() {
        let mut kubeconfig = parse_kubeconfig(TEXT).unwrap();
        settle(&mut kubeconfig, Path::new("/home/it"));
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(
            cluster.certificate_authority.as_deref(),
            Some("/home/it/pki/ca.crt")
        );
        let user = |number: usize| kubeconfig.auth_infos[number].auth_info.as_ref().unwrap();
        let command = |number| user(number).exec.as_ref().unwrap().command.as_deref();
        assert_eq!(
            user(0).client_certificate.as_deref(),
            Some("/etc/admin.crt")
        );
        assert_eq!(user(0).client_key.as_deref(), Some("/home/it/admin.key"));
        assert_eq!(command(0), Some("/home/it/./login"));
        assert_eq!(command(1), Some("login"));
    }

    #[test]
    fn documents_are_merged_and_the_first_counts() {
        let text = format!("{TEXT}\n---\ncurrent-context: other\nclusters: [{{name: second}}]\n");
        let kubeconfig = parse_kubeconfig(&text).unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("edge"));
        assert_eq!(kubeconfig.clusters.len(), 2);
        assert!(parse_kubeconfig("").unwrap().clusters.is_empty());
        assert!(parse_kubeconfig(&format!("\u{feff}{TEXT}")).is_ok());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text| parse_kubeconfig(text).unwrap_err().to_string();
        assert!(
            error("a: [").starts_with("yaml: line 1"),
            "{}",
            error("a: [")
        );
        assert!(error("clusters: 5").starts_with("not a kubeconfig: invalid type"));
        assert!(error("hello").starts_with("not a kubeconfig: invalid type"));
    }

    #[test]
    fn a_missing_file_is_told() {
        let error = read_kubeconfig(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(matches!(error, KubeconfigError::Read(_)));
    }
}

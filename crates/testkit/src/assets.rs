//! Where the programs of a real control plane are.

use std::path::PathBuf;

/// The variable that names the directory, the same as envtest's.
const VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The directory with `etcd` and `kube-apiserver`.
#[derive(Debug, Clone)]
pub struct Assets(PathBuf);

impl Assets {
    /// The directory that `KUBEBUILDER_ASSETS` names; a word about why not otherwise.
    pub fn find() -> Result<Self, String> {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests have no command line to be configured by"
        )]
        let directory = std::env::var(VARIABLE)
            .map_err(|_| format!("{VARIABLE} does not say where etcd and kube-apiserver are"))?;
        let assets = Self(directory.into());
        for program in ["etcd", "kube-apiserver"] {
            if !assets.program(program).exists() {
                return Err(format!("there is no {program} in {}", assets.0.display()));
            }
        }
        Ok(assets)
    }

    /// The path of a program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

//! Where the programs of a real control plane are.

use std::path::PathBuf;

/// The variable that names the directory, the same as envtest's; several are separated as in `PATH`.
const VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The directory with `etcd` and `kube-apiserver`.
#[derive(Debug, Clone)]
pub struct Assets(PathBuf);

impl Assets {
    /// The first directory that `KUBEBUILDER_ASSETS` names; a sentence about why not otherwise.
    pub fn find() -> Result<Self, String> {
        let mut all = Self::find_all()?;
        Ok(all.swap_remove(0))
    }

    /// All directories that `KUBEBUILDER_ASSETS` names, separated as in `PATH`: at least one. Several hold several versions.
    pub fn find_all() -> Result<Vec<Self>, String> {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests have no command line to be configured by"
        )]
        let directories = std::env::var(VARIABLE).unwrap_or_default();
        let directories: Vec<PathBuf> = std::env::split_paths(&directories)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        if directories.is_empty() {
            return Err(format!(
                "{VARIABLE} does not name where etcd and kube-apiserver are"
            ));
        }
        directories.into_iter().map(Self::check).collect()
    }

    fn check(directory: PathBuf) -> Result<Self, String> {
        let assets = Self(directory);
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

//! A real control plane: etcd and kube-apiserver, and the controller manager where it is wanted.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;

use crate::assets::Assets;

/// Who may do everything there.
const TOKEN: &str = "administrator-of-a-test";
const STARTS_WITHIN: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(50);

/// A real cluster without nodes. It ends when this is dropped.
#[derive(Debug)]
pub struct RealCluster {
    directory: TempDir,
    port: u16,
    processes: Vec<Child>,
}

impl RealCluster {
    /// Starts etcd and kube-apiserver, and waits until they are ready.
    pub async fn start(assets: &Assets) -> anyhow::Result<Self> {
        let mut cluster = Self {
            directory: tempfile::tempdir()?,
            port: free_port()?,
            processes: Vec::new(),
        };
        let storage = cluster.start_storage(assets)?;
        cluster.start_server(assets, &storage)?;
        fs::write(cluster.kubeconfig(), cluster.kubeconfig_text())?;
        cluster.until_ready().await?;
        Ok(cluster)
    }

    /// Starts the controller manager as well: namespaces end, owned objects are collected, approved
    /// certificates are signed, workloads get pods, which nobody runs.
    pub fn start_controllers(&mut self, assets: &Assets) -> anyhow::Result<()> {
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig().display());
        let key = format!(
            "--service-account-private-key-file={}",
            self.path("key").display()
        );
        let certificate = format!(
            "--cluster-signing-cert-file={}",
            self.path("ca.crt").display()
        );
        let signing_key = format!(
            "--cluster-signing-key-file={}",
            self.path("ca.key").display()
        );
        let arguments = [
            kubeconfig.as_str(),
            &key,
            &certificate,
            &signing_key,
            "--leader-elect=false",
            "--use-service-account-credentials=false",
            "--bind-address=127.0.0.1",
            "--secure-port=0",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--controllers=*,-nodeipam,-cloud-node-lifecycle",
        ];
        self.spawn(&assets.program("kube-controller-manager"), &arguments)
    }

    /// A kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    /// The same as text.
    pub fn kubeconfig_text(&self) -> String {
        let port = self.port;
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: real\n\
             clusters: [{{name: real, cluster: {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}}}]\n\
             users: [{{name: admin, user: {{token: {TOKEN}}}}}]\n\
             contexts: [{{name: real, context: {{cluster: real, user: admin}}}}]\n"
        )
    }

    /// The certificate of its API server, with its authority.
    pub fn server_certificate(&self) -> PathBuf {
        self.path("certificates/apiserver.crt")
    }

    /// A client of its administrator, with a connection of its own.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig_text())?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(Client::try_from(config)?)
    }

    /// The processes that it consists of.
    pub fn processes(&self) -> Vec<u32> {
        self.processes.iter().map(Child::id).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn start_storage(&mut self, assets: &Assets) -> anyhow::Result<String> {
        let (client, peer) = (free_port()?, free_port()?);
        let (client, peer) = (
            format!("http://127.0.0.1:{client}"),
            format!("http://127.0.0.1:{peer}"),
        );
        let data = self.path("etcd").display().to_string();
        let cluster = format!("default={peer}");
        let arguments = [
            ["--data-dir", &data],
            ["--listen-client-urls", &client],
            ["--advertise-client-urls", &client],
            ["--listen-peer-urls", &peer],
            ["--initial-advertise-peer-urls", &peer],
            ["--initial-cluster", &cluster],
        ]
        .concat();
        self.spawn(&assets.program("etcd"), &arguments)?;
        Ok(client)
    }

    fn start_server(&mut self, assets: &Assets, storage: &str) -> anyhow::Result<()> {
        let key = rcgen::KeyPair::generate()?;
        fs::write(self.path("key"), key.serialize_pem())?;
        fs::write(self.path("public-key"), key.public_key_pem())?;
        fs::write(
            self.path("tokens"),
            format!("{TOKEN},admin,admin,system:masters\n"),
        )?;
        self.create_authority()?;
        let (key, tokens) = (self.path("key"), self.path("tokens"));
        let arguments = [
            format!("--etcd-servers={storage}"),
            format!("--secure-port={}", self.port),
            format!("--cert-dir={}", self.path("certificates").display()),
            format!("--token-auth-file={}", tokens.display()),
            format!("--client-ca-file={}", self.path("ca.crt").display()),
            "--enable-bootstrap-token-auth=true".to_owned(),
            format!(
                "--service-account-key-file={}",
                self.path("public-key").display()
            ),
            format!("--service-account-signing-key-file={}", key.display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--anonymous-auth=false".to_owned(),
            // Addresses of this machine are no endpoints.
            "--endpoint-reconciler-type=none".to_owned(),
            // Without controllers there are no service accounts that pods would need.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.spawn(&assets.program("kube-apiserver"), &arguments)
    }

    /// Writes an authority for client certificates.
    fn create_authority(&self) -> anyhow::Result<()> {
        let key = rcgen::KeyPair::generate()?;
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        fs::write(self.path("ca.crt"), params.self_signed(&key)?.pem())?;
        fs::write(self.path("ca.key"), key.serialize_pem())?;
        Ok(())
    }

    fn spawn(&mut self, program: &Path, arguments: &[&str]) -> anyhow::Result<()> {
        let name = program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let log = fs::File::create(self.path(&format!("{name}.log")))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        self.processes.push(child);
        Ok(())
    }

    async fn until_ready(&mut self) -> anyhow::Result<()> {
        let client = self.client().await?;
        let ready = async {
            while self.processes.iter_mut().all(is_running) {
                let request = http_get("/readyz");
                if client
                    .request_text(request)
                    .await
                    .is_ok_and(|text| text == "ok")
                {
                    return true;
                }
                tokio::time::sleep(PAUSE).await;
            }
            false
        };
        if matches!(tokio::time::timeout(STARTS_WITHIN, ready).await, Ok(true)) {
            return Ok(());
        }
        let log = fs::read_to_string(self.path("kube-apiserver.log")).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(5).collect();
        bail!("kube-apiserver did not get ready:\n{}", last.join("\n"))
    }
}

impl Drop for RealCluster {
    fn drop(&mut self) {
        // In reverse: a server without its storage would only complain.
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn is_running(process: &mut Child) -> bool {
    matches!(process.try_wait(), Ok(None))
}

fn http_get(path: &str) -> http::Request<Vec<u8>> {
    let mut request = http::Request::new(Vec::new());
    if let Ok(uri) = path.parse() {
        *request.uri_mut() = uri;
    }
    request
}

/// A port that nobody listens on, just now.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

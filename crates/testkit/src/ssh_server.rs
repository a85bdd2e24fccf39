//! OpenSSH's server on loopback, as a process of the test's own user, for repositories of git.

#![expect(
    clippy::expect_used,
    reason = "a test whose server cannot be set up has failed"
)]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where the server is, besides the directories of the search path.
const PLACES: [&str; 3] = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"];
/// A directory that the server wants to be there if it runs as root.
const PRIVILEGE_SEPARATION: &str = "/run/sshd";
/// How often it is tried to connect to a server that starts.
const ATTEMPTS: usize = 100;

/// A server that accepts one key. It ends when it is dropped.
#[derive(Debug)]
pub struct SshServer {
    process: Child,
    directory: PathBuf,
    port: u16,
    user: String,
}

impl SshServer {
    /// Starts a server whose keys and configuration are in a directory. None if OpenSSH is not installed.
    pub fn start(directory: &Path) -> Option<Self> {
        let program = PLACES.iter().map(Path::new).find(|path| path.is_file())?;
        let user = Command::new("id").arg("-un").output().ok()?.stdout;
        let user = String::from_utf8_lossy(&user).trim().to_owned();
        for (name, kind) in [
            ("host", "ed25519"),
            ("host-rsa", "rsa"),
            ("host-ecdsa", "ecdsa"),
            ("client", "ed25519"),
            ("client-rsa", "rsa"),
            ("client-ecdsa", "ecdsa"),
            ("stranger", "ed25519"),
        ] {
            generate_key(&directory.join(name), kind)?;
        }
        let keys = ["client", "client-rsa", "client-ecdsa"].map(|name| {
            fs::read_to_string(directory.join(format!("{name}.pub"))).expect("a public key")
        });
        fs::write(directory.join("authorized_keys"), keys.concat()).expect("a file");
        let port = free_port();
        let shown = directory.display();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {shown}/host\nHostKey {shown}/host-rsa\n\
             HostKey {shown}/host-ecdsa\nAuthorizedKeysFile {shown}/authorized_keys\n\
             PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\n\
             AcceptEnv GIT_PROTOCOL\n"
        );
        let path = directory.join("sshd_config");
        fs::write(&path, config).expect("a file");
        // Only root needs it, and only root can make it.
        let _ = fs::create_dir(PRIVILEGE_SEPARATION);
        let process = Command::new(program)
            .args(["-D", "-e", "-f"])
            .arg(&path)
            .stdin(Stdio::null())
            .stderr(fs::File::create(directory.join("sshd.log")).expect("a file"))
            .spawn()
            .expect("sshd runs");
        let mut server = Self {
            process,
            directory: directory.to_owned(),
            port,
            user,
        };
        server.wait_until_it_listens();
        Some(server)
    }

    fn wait_until_it_listens(&mut self) {
        for _ in 0..ATTEMPTS {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            let ended = self.process.try_wait().expect("a process of ours");
            assert!(ended.is_none(), "sshd ended: {}", self.log());
            let (_keep, wait) = std::sync::mpsc::channel::<()>();
            let _ = wait.recv_timeout(Duration::from_millis(100));
        }
        panic!("sshd does not listen: {}", self.log());
    }

    /// The address of a repository at a path.
    pub fn url(&self, path: &Path) -> String {
        format!(
            "ssh://{}@127.0.0.1:{}{}",
            self.user,
            self.port,
            path.display()
        )
    }

    /// A private key: `client`, `client-rsa` and `client-ecdsa` are accepted, `stranger` is not.
    pub fn key(&self, name: &str) -> String {
        fs::read_to_string(self.directory.join(name)).expect("a private key")
    }

    /// The line of a list of known hosts for this server, with a key of its directory: `host`, `host-rsa` and `host-ecdsa` are
    /// its own.
    pub fn known_hosts(&self, name: &str) -> String {
        let key = fs::read_to_string(self.directory.join(format!("{name}.pub")));
        format!("[127.0.0.1]:{} {}", self.port, key.expect("a public key"))
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("sshd.log")).unwrap_or_default()
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn generate_key(path: &Path, kind: &str) -> Option<()> {
    // The shortest of each type: they are made for each test.
    let bits = if kind == "rsa" { "2048" } else { "256" };
    let status = Command::new("ssh-keygen")
        .args(["-q", "-N", "", "-C", "test", "-t", kind, "-b", bits, "-f"])
        .arg(path)
        .stdin(Stdio::null())
        .status()
        .ok()?;
    assert!(status.success(), "ssh-keygen failed");
    Some(())
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    listener.local_addr().expect("an address").port()
}

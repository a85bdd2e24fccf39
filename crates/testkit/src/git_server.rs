//! A git server on loopback: git's own programs behind a small HTTP server.

#![expect(
    clippy::expect_used,
    reason = "a test whose server cannot be set up has failed"
)]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Called before a push is handed to git; false drops the connection afterwards without an answer.
type Hook = Box<dyn Fn() -> bool + Send + Sync>;

/// A git server with repositories in a directory. It ends when it is dropped.
pub struct GitServer {
    shared: Arc<Shared>,
    port: u16,
}

struct Shared {
    root: PathBuf,
    /// `user:password` that clients have to send.
    credentials: Mutex<Option<String>>,
    pushes: AtomicUsize,
    is_stopped: AtomicBool,
    is_version_0: AtomicBool,
    hook: Mutex<Option<Hook>>,
}

impl std::fmt::Debug for GitServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "GitServer({})", self.port)
    }
}

impl GitServer {
    /// Starts a server for the repositories in a directory. None if git is not installed.
    pub fn start(root: &Path) -> Option<Self> {
        let version = Command::new("git").arg("--version").output().ok()?;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            credentials: Mutex::new(None),
            pushes: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            is_version_0: AtomicBool::new(false),
            hook: Mutex::new(None),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.is_stopped.load(Ordering::SeqCst) {
                    break;
                }
                let serving = Arc::clone(&serving);
                std::thread::spawn(move || serving.converse(&stream));
            }
        });
        version.status.success().then_some(Self { shared, port })
    }

    /// The address of a repository.
    pub fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// Where a repository is on this machine.
    pub fn path(&self, name: &str) -> PathBuf {
        self.shared.root.join(name)
    }

    /// Creates an empty repository.
    pub fn create(&self, name: &str) {
        let path = self.path(name);
        let path = path.to_str().expect("a path of UTF-8");
        git(
            &self.shared.root,
            &["init", "--quiet", "--bare", "--initial-branch=main", path],
        );
        git(Path::new(path), &["config", "http.receivepack", "true"]);
        git(
            Path::new(path),
            &["config", "uploadpack.allowFilter", "true"],
        );
    }

    /// Commits files to a repository with git itself. Paths that are to be removed have no content.
    pub fn commit(
        &self,
        name: &str,
        branch: &str,
        message: &str,
        files: &[(&str, Option<&str>)],
    ) -> String {
        let work = tempfile::tempdir().expect("a directory");
        let path = self.path(name);
        let path = path.to_str().expect("a path of UTF-8");
        git(work.path(), &["clone", "--quiet", path, "."]);
        let has_branch = Command::new("git")
            .args([
                "rev-parse",
                "--quiet",
                "--verify",
                &format!("origin/{branch}"),
            ])
            .current_dir(work.path())
            .output();
        if has_branch.is_ok_and(|output| output.status.success()) {
            git(
                work.path(),
                &[
                    "checkout",
                    "--quiet",
                    "-B",
                    branch,
                    &format!("origin/{branch}"),
                ],
            );
        } else {
            git(work.path(), &["checkout", "--quiet", "--orphan", branch]);
        }
        for (file, content) in files {
            let file = work.path().join(file);
            match content {
                Some(content) => {
                    std::fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
                    std::fs::write(file, content).expect("a file");
                }
                None => std::fs::remove_file(file).expect("a file that is there"),
            }
        }
        git(work.path(), &["add", "--all"]);
        git(work.path(), &["commit", "--quiet", "-m", message]);
        git(
            work.path(),
            &[
                "push",
                "--quiet",
                "origin",
                &format!("HEAD:refs/heads/{branch}"),
            ],
        );
        git(work.path(), &["rev-parse", "HEAD"])
    }

    /// Runs git in a repository, and returns what it printed.
    pub fn git(&self, name: &str, arguments: &[&str]) -> String {
        git(&self.path(name), arguments)
    }

    /// Wants clients to send a user and a password from now on.
    pub fn require(&self, user: &str, password: &str) {
        let mut credentials = self.shared.credentials.lock().expect("no panic");
        *credentials = Some(format!("{user}:{password}"));
    }

    /// Calls something before each push; false drops the connection after the push without an answer.
    pub fn before_push(&self, hook: impl Fn() -> bool + Send + Sync + 'static) {
        *self.shared.hook.lock().expect("no panic") = Some(Box::new(hook));
    }

    /// Speaks only the first version of the protocol from now on, as old servers do.
    pub fn speak_version_0(&self) {
        self.shared.is_version_0.store(true, Ordering::SeqCst);
    }

    /// How many pushes reached git.
    pub fn pushes(&self) -> usize {
        self.shared.pushes.load(Ordering::SeqCst)
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        // A connection for the thread to notice.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Runs git in a directory, with nothing of the user's own configuration.
fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .envs([
            ("GIT_AUTHOR_NAME", "Somebody"),
            ("GIT_AUTHOR_EMAIL", "somebody@example.org"),
        ])
        .envs([
            ("GIT_COMMITTER_NAME", "Somebody"),
            ("GIT_COMMITTER_EMAIL", "somebody@example.org"),
        ])
        .output()
        .expect("git runs");
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {problem}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

struct HttpRequest {
    method: String,
    target: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Shared {
    fn converse(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader) {
            match self.answer(&request) {
                Some(answer) => {
                    if (&mut &*stream).write_all(&answer).is_err() {
                        return;
                    }
                }
                None => return,
            }
        }
    }

    /// The answer as bytes; none if the connection is to be dropped.
    fn answer(&self, request: &HttpRequest) -> Option<Vec<u8>> {
        if let Some(credentials) = &*self.credentials.lock().expect("no panic") {
            let expected = format!("Basic {}", base64(credentials.as_bytes()));
            if request.headers.get("authorization") != Some(&expected) {
                return Some(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".to_vec());
            }
        }
        let is_push = request.method == "POST" && request.target.ends_with("/git-receive-pack");
        let mut is_answered = true;
        if is_push {
            self.pushes.fetch_add(1, Ordering::SeqCst);
            if let Some(hook) = &*self.hook.lock().expect("no panic") {
                is_answered = hook();
            }
        }
        let output = self.run(request);
        is_answered.then_some(output)
    }

    /// Hands a request to git's own CGI program.
    fn run(&self, request: &HttpRequest) -> Vec<u8> {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        let header = |name: &str| request.headers.get(name).cloned().unwrap_or_default();
        let protocol = if self.is_version_0.load(Ordering::SeqCst) {
            String::new()
        } else {
            header("git-protocol")
        };
        let mut child = Command::new("git")
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", &self.root)
            .envs([
                ("GIT_HTTP_EXPORT_ALL", "1"),
                ("REMOTE_ADDR", "127.0.0.1"),
                ("REMOTE_USER", "test"),
            ])
            .envs([
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ])
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REQUEST_METHOD", &request.method)
            .env("CONTENT_TYPE", header("content-type"))
            .env("CONTENT_LENGTH", request.body.len().to_string())
            .env("GIT_PROTOCOL", protocol)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("git http-backend runs");
        let mut input = child.stdin.take().expect("a pipe");
        let body = request.body.clone();
        let writer = std::thread::spawn(move || input.write_all(&body));
        let output = child
            .wait_with_output()
            .expect("git http-backend ends")
            .stdout;
        let _ = writer.join();
        let end = output
            .windows(4)
            .position(|bytes| bytes == b"\r\n\r\n")
            .unwrap_or(output.len());
        let headers = String::from_utf8_lossy(&output[..end]).into_owned();
        let body = output.get(end + 4..).unwrap_or_default();
        let status = headers
            .lines()
            .find_map(|line| line.strip_prefix("Status: "));
        let mut answer = format!("HTTP/1.1 {}\r\n", status.unwrap_or("200 OK"));
        for line in headers.lines().filter(|line| !line.starts_with("Status:")) {
            answer.push_str(line);
            answer.push_str("\r\n");
        }
        let length = body.len().to_string();
        answer.extend(["Content-Length: ", &length, "\r\n\r\n"]);
        let mut answer = answer.into_bytes();
        answer.extend_from_slice(body);
        answer
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<HttpRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .and_then(|text| text.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(HttpRequest {
        method,
        target,
        headers,
        body,
    })
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0_u32, |bits, (index, byte)| {
            bits | u32::from(*byte) << (16 - 8 * index)
        });
        for index in 0..4 {
            if index <= chunk.len() {
                let letter = (bits >> (18 - 6 * index)) & 0x3f;
                text.push(char::from(LETTERS[letter as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

//! A connection to an API server that can be interrupted: bytes wait in it until it is whole again. (A module of other
//! tests, not a test.)

#![allow(clippy::unwrap_used, unreachable_pub, reason = "helpers of tests")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// Forwards connections. While it is cut, nothing passes in either direction, without an error: what was sent
/// before arrives late.
pub struct Wire {
    pub port: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_cut: Mutex<bool>,
    changed: Condvar,
}

impl State {
    fn until_whole(&self) {
        let mut is_cut = self.is_cut.lock().unwrap();
        while *is_cut {
            is_cut = self.changed.wait(is_cut).unwrap();
        }
    }
}

impl Wire {
    /// Begins to forward to a port of this machine.
    pub fn to(port: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port().to_string();
        let target = format!("127.0.0.1:{port}");
        let state: Arc<State> = Arc::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let (target, state) = (target.clone(), Arc::clone(&shared));
                std::thread::spawn(move || connect(near, &target, &state));
            }
        });
        Self { port: own, state }
    }

    pub fn cut(&self) {
        *self.state.is_cut.lock().unwrap() = true;
    }

    pub fn mend(&self) {
        *self.state.is_cut.lock().unwrap() = false;
        self.state.changed.notify_all();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.mend();
    }
}

fn connect(near: TcpStream, target: &str, state: &Arc<State>) {
    state.until_whole();
    let Ok(far) = TcpStream::connect(target) else {
        return;
    };
    let (back, other) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    let shared = Arc::clone(state);
    std::thread::spawn(move || forward(back, other, &shared));
    forward(near, far, state);
}

fn forward(mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut buffer = [0; 16 * 1024];
    loop {
        let length = from.read(&mut buffer).unwrap_or_default();
        state.until_whole();
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
            return;
        }
    }
}

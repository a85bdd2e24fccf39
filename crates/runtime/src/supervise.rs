//! Tasks that a process cannot do without: when one ends, all end, and the process says which.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use crate::controller::text_of_panic;

/// The end of a task that should have run on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} ended: {why}")]
pub struct Ended {
    /// Which one, such as `controller placement`.
    pub name: String,
    /// Why it ended.
    pub why: String,
}

/// Tasks that have to run on. They end when this is dropped.
#[derive(Default)]
pub struct Tasks {
    tasks: JoinSet<()>,
    names: HashMap<Id, Named>,
}

struct Named {
    name: String,
    /// Whether it may return when it is done; a panic counts all the same.
    may_return: bool,
}

impl Tasks {
    /// No tasks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a task. Must be called within a tokio runtime.
    pub fn spawn(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.add(name.into(), false, task);
    }

    /// Starts a task that may return when it is done, such as the agent of a member that is detached
    /// one day. Only its panic is an end. Must be called within a tokio runtime.
    pub fn spawn_finite(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.add(name.into(), true, task);
    }

    fn add(
        &mut self,
        name: String,
        may_return: bool,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let id = self.tasks.spawn(task).id();
        self.names.insert(id, Named { name, may_return });
    }

    /// Waits until the first of them ends, or until a [vital](spawn_vital) task of this process does.
    pub async fn ended(&mut self) -> Ended {
        tokio::select! {
            ended = self.first_ended() => ended,
            ended = vital_ended() => ended,
        }
    }

    async fn first_ended(&mut self) -> Ended {
        loop {
            let Some(ended) = self.tasks.join_next_with_id().await else {
                // There are none: nothing can end.
                return std::future::pending().await;
            };
            let id = match &ended {
                Ok((id, ())) => *id,
                Err(error) => error.id(),
            };
            let Some(Named { name, may_return }) = self.names.remove(&id) else {
                continue;
            };
            match ended {
                Ok(_) if may_return => {}
                Ok(_) => {
                    let why = "it returned".to_owned();
                    return Ended { name, why };
                }
                Err(error) => {
                    let why = why(error);
                    return Ended { name, why };
                }
            }
        }
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.values().map(|named| &named.name);
        formatter.debug_list().entries(names).finish()
    }
}

fn why(error: tokio::task::JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("it panicked: {}", text_of_panic(&*panic)),
        Err(_) => "it was cancelled".to_owned(),
    }
}

/// Where the panic of a vital task is announced to the whole process.
fn announced() -> &'static watch::Sender<Option<Ended>> {
    static ANNOUNCED: std::sync::LazyLock<watch::Sender<Option<Ended>>> =
        std::sync::LazyLock::new(|| watch::Sender::new(None));
    &ANNOUNCED
}

/// Runs a task that others depend on without waiting for it, such as the watch of a cache. Its panic
/// ends whatever awaits [`Tasks::ended`] in this process: a cache that no longer follows its cluster
/// would be wrong without anybody noticing.
pub fn spawn_vital(
    name: impl Into<String>,
    task: impl Future<Output = ()> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let name = name.into();
    tokio::spawn(async move {
        if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
            let why = format!("it panicked: {}", text_of_panic(&*panic));
            tracing::error!(task = name, why, "a task that must not end has ended");
            announced().send_replace(Some(Ended { name, why }));
        }
    })
}

async fn vital_ended() -> Ended {
    let mut announced = announced().subscribe();
    loop {
        if let Some(ended) = announced.borrow_and_update().clone() {
            return ended;
        }
        if announced.changed().await.is_err() {
            // The sender is static; this cannot happen.
            return std::future::pending().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_task_that_ends_is_named() {
        let mut tasks = Tasks::new();
        tasks.spawn("patient", std::future::pending());
        tasks.spawn_finite("brief", async {});
        tasks.spawn("hasty", async {});
        assert_eq!(
            tasks.first_ended().await.to_string(),
            "hasty ended: it returned"
        );
        tasks.spawn("clumsy", async { panic!("dropped it") });
        assert_eq!(
            tasks.first_ended().await.to_string(),
            "clumsy ended: it panicked: dropped it"
        );
    }

    #[tokio::test]
    async fn the_panic_of_a_vital_task_ends_whatever_is_supervised() {
        let mut tasks = Tasks::new();
        tasks.spawn("patient", std::future::pending());
        drop(spawn_vital("watch of nodes", async {
            panic!("unreadable")
        }));
        let ended = tasks.ended().await;
        assert_eq!(ended.name, "watch of nodes");
        assert_eq!(ended.why, "it panicked: unreadable");
    }
}

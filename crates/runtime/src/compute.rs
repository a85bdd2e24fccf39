//! Programs of users, such as CEL expressions: run beside the tasks of the runtime, a few at once, each
//! in its turn.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// How many programs run at once. At least one core stays for requests.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, usize::from);
    Semaphore::new(cores.saturating_sub(1).max(1))
});

/// Runs something that takes CPU time without holding up other tasks. Callers take turns in the
/// order in which they come, so that many programs of one user delay those of others by what one of
/// them may cost.
///
/// Must be called within a tokio runtime. What runs has a budget of its own: it is not interrupted.
pub async fn compute<T>(work: impl FnOnce() -> T) -> T {
    // A single thread does one thing after the other anyway: it has nobody to take turns with.
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return work();
    }
    // The semaphore is never closed: an error cannot happen, and would only mean not to wait.
    let _turn = TURNS.acquire().await;
    tokio::task::block_in_place(work)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// The program waits for what only another task of the runtime's single worker can send.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_program_that_runs_long_holds_up_no_other_task() {
        let (sender, receiver) = mpsc::channel();
        let program = tokio::spawn(async move {
            compute(move || receiver.recv_timeout(Duration::from_mins(1)).is_ok()).await
        });
        tokio::spawn(async move { sender.send(()) });
        assert!(program.await.unwrap());
    }
}

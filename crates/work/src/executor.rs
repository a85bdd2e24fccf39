//! In whose name a work is applied.

use bellwether_api::work::{Executor, ExecutorSubjectType};
use bellwether_apply::executor::Account;

/// The account of an executor, or why it has none.
pub fn account_of(executor: &Executor) -> Result<Account, String> {
    if let ExecutorSubjectType::Other(_) = executor.subject.kind {
        return Err("only support ServiceAccount type for the executor".to_owned());
    }
    match &executor.subject.service_account {
        Some(account) => Ok(Account {
            namespace: account.namespace.clone(),
            name: account.name.clone(),
        }),
        None => Err("the executor service account is nil".to_owned()),
    }
}

//! Whether a manifest may be applied in the name of the work's executor: asked once a generation, before
//! every later write, when rights on the member change, and a minute after it was denied.

use bellwether_runtime::LiveState;
use bellwether_work::executor::RETRY_SECONDS;
use bellwether_work::status::Failure;
use jiff::{SignedDuration, Timestamp};

use super::{ApplyRequest, Obstacle, Outcome, seen};
use crate::work_agent::Shared;
use crate::work_agent::executor::{self, Permission, Refusal};
use crate::work_agent::member::{Member, Memory};

/// Whether the executor may apply the manifest as it is in this generation of the work, whatever
/// its strategy writes; says whether that was asked just now.
pub(super) async fn may_apply(
    shared: &Shared,
    member: &Member,
    request: &ApplyRequest<'_>,
    memory: &mut Memory,
    known: &LiveState,
) -> Result<bool, Outcome> {
    let known_answer = memory.permission.as_deref();
    let answer = known_answer.filter(|known| {
        known.generation == request.generation && known.rights == member.rights.version()
    });
    match answer.map(|answer| &answer.denied) {
        Some(None) => Ok(false),
        Some(Some((until, message))) if *until > shared.clock.now() => {
            let (until, message) = (*until, message.clone());
            Err(denied(until, message, seen(member, request, known).await))
        }
        _ => ask(shared, member, request, memory, known)
            .await
            .map(|()| true),
    }
}

/// A manifest that must not be applied, with what is known of the object: it may have to be removed
/// later, but is not reported.
fn denied(until: Timestamp, message: String, live: LiveState) -> Outcome {
    Outcome {
        again: Some(until),
        retry: false,
        obstacle: Some(Obstacle::Denied),
        ..Outcome::failed(Failure::Apply(message), live)
    }
}

/// Asks in the executor's name, if there is one.
pub(super) async fn ask(
    shared: &Shared,
    member: &Member,
    request: &ApplyRequest<'_>,
    memory: &mut Memory,
    known: &LiveState,
) -> Result<(), Outcome> {
    memory.permission = None;
    let rights = member.rights.version();
    let Some(account) = request.executor else {
        return Ok(());
    };
    let answer = executor::check(
        &member.objects,
        account,
        request.resource,
        request.id,
        &request.manifest.object,
        request.owned,
    )
    .await;
    let mut permission = Permission {
        generation: request.generation,
        rights,
        denied: None,
    };
    let result = match answer {
        Ok(()) => Ok(()),
        Err(Refusal::Unknown(error)) => {
            return Err(Outcome::failed(Failure::Apply(error), known.clone()));
        }
        Err(Refusal::Denied(message)) => {
            let until = shared
                .clock
                .now()
                .checked_add(SignedDuration::from_secs(RETRY_SECONDS))
                .unwrap_or(Timestamp::MAX);
            permission.denied = Some((until, message.clone()));
            Err(denied(until, message, seen(member, request, known).await))
        }
    };
    memory.permission = Some(Box::new(permission));
    result
}

//! One handler for all resources: what is asked, done the same way for every kind.

mod connection;
pub(crate) mod create;
pub(crate) mod delete;
mod eviction;
mod get;
mod in_place;
mod list;
mod log;
mod measure;
mod patch;
mod revision;
mod scale;
mod subresource;
pub(crate) mod token_request;
pub(crate) mod update;
mod walk;
mod watch;

use crate::answer::Reply;
use crate::body::RequestBody;
use crate::context::RequestContext;
use crate::request::Verb;
use crate::resource::Part;
use crate::status::ApiError;

/// Does what the request asks for.
pub(crate) async fn handle(mut cx: RequestContext, body: &RequestBody) -> Result<Reply, ApiError> {
    let part = match cx.subresource.as_deref() {
        None if cx.resource.is_measured() => return measure::handle(&cx),
        None => Part::Main,
        Some("status") if cx.resource.has_status() => Part::Status,
        Some("scale") => return scale::handle(cx, body).await,
        Some(_) => return subresource::handle(cx, body).await,
    };
    match cx.verb {
        Verb::Get => get::get(&cx).await.map(Into::into),
        Verb::List => list::list(&cx).await.map(Into::into),
        Verb::Watch => watch::watch(&cx).await.map(Into::into),
        Verb::Create => create::create(&cx, body).await,
        Verb::Update => update::update(&cx, part, body).await,
        Verb::Patch => patch::patch(&cx, part, body).await,
        Verb::Delete => delete::delete(&cx, body).await,
        Verb::DeleteCollection => {
            cx.name = None;
            delete::delete_collection(cx, body).await
        }
    }
}

//! The name that requests carry, so that the audit log of an API server tells which controller sent them.

use http::{HeaderValue, Request, header};
use kube::Client;
use kube::client::Body;
use tower::BoxError;

/// Returns a client whose requests carry this name in `User-Agent`. A name that is not visible ASCII is left out.
pub fn with_user_agent(client: Client, name: &str) -> Client {
    let Ok(name) = HeaderValue::from_str(name) else {
        return client;
    };
    let namespace = client.default_namespace().to_owned();
    let named = tower::service_fn(move |mut request: Request<Body>| {
        let client = client.clone();
        request
            .headers_mut()
            .insert(header::USER_AGENT, name.clone());
        async move { client.send(request).await.map_err(BoxError::from) }
    });
    Client::new(named, namespace)
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    #[tokio::test]
    async fn requests_carry_the_name() {
        let server = tower::service_fn(|request: Request<Body>| async move {
            let name = request.headers().get(header::USER_AGENT);
            let name = name.map_or(&[][..], HeaderValue::as_bytes).to_vec();
            Ok::<_, BoxError>(Response::new(Body::from(name)))
        });
        let client = Client::new(server, "default");
        let ask = async |name: &str| {
            let named = with_user_agent(client.clone(), name);
            let request = Request::get("/version").body(Vec::new()).unwrap();
            named.request_text(request).await.unwrap()
        };
        assert_eq!(
            ask("bellwether/1 placement").await,
            "bellwether/1 placement"
        );
        assert_eq!(ask("two\nlines").await, "");
    }
}

//! Serving over TLS: every connection is encrypted, and a client may prove who it is.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::authenticate::Caller;
use crate::limits::Limits;
use crate::pki::identify;
use crate::server::ApiServer;
use crate::unstalled::Unstalled;

/// Open requests get this long to end when the server stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// How much of an answer is taken over for a connection before the client has taken any of it; the
/// headers of a request may have as much.
const CONNECTION_BUFFER: usize = 64 * 1024;

/// Serves until `stop` is done, then lets open requests end.
///
/// Boxed, so that handlers are compiled with this crate and for speed, and not with each program that
/// serves.
pub fn serve(
    server: ApiServer,
    listener: TcpListener,
    config: Arc<ServerConfig>,
    stop: BoxFuture<'static, ()>,
) -> BoxFuture<'static, ()> {
    accept(server, listener, config, stop).boxed()
}

async fn accept(
    server: ApiServer,
    listener: TcpListener,
    config: Arc<ServerConfig>,
    mut stop: BoxFuture<'static, ()>,
) {
    let acceptor = TlsAcceptor::from(config);
    let places = Arc::new(Semaphore::new(server.limits().connections));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = async {
            // Without a free place, anyone who knocks waits at the door.
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, stream, address) = tokio::select! {
            () = &mut stop => break,
            (place, accepted) = accepted => match accepted {
                Ok((stream, address)) => (place, stream, address),
                Err(error) => {
                    // Usually too many open files: others may close theirs soon.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let (server, acceptor, watcher) = (server.clone(), acceptor.clone(), graceful.watcher());
        tokio::spawn(async move {
            let connection = Connection {
                acceptor,
                stream,
                address: address.ip(),
            };
            if let Err(error) = serve_connection(server, connection, watcher).await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(SHUTDOWN_GRACE, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::debug!("some connections did not end in time");
    }
}

/// Somebody who has connected.
struct Connection {
    acceptor: TlsAcceptor,
    stream: TcpStream,
    address: IpAddr,
}

/// Ends when nothing has been asked in time; goes on forever once something has.
async fn first_request_timeout(something_asked: &AtomicBool, timeout: Duration) {
    tokio::time::sleep(timeout).await;
    if something_asked.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

async fn serve_connection(
    server: ApiServer,
    connection: Connection,
    watcher: hyper_util::server::graceful::Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let Connection {
        acceptor,
        stream,
        address,
    } = connection;
    let Limits {
        header_time: timeout,
        idle_time,
        stall_time,
        ..
    } = *server.limits();
    stream.set_nodelay(true)?;
    let stream = Unstalled::new(stream, stall_time);
    let stream = tokio::time::timeout(timeout, acceptor.accept(stream)).await??;
    let certificate = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first);
    let caller = match certificate.map(|certificate| identify(certificate)) {
        Some(Some(certified)) => Caller {
            identity: Some(certified.identity),
            only_cluster: Some(certified.cluster),
            expires: Some(certified.expires),
            address: Some(address),
            in_process: false,
        },
        // Signed by our authority, but for nobody: believing it anonymous would hide a mistake.
        Some(None) => return Err("a client certificate without an identity".into()),
        None => Caller {
            address: Some(address),
            ..Caller::default()
        },
    };
    let has_asked = Arc::new(AtomicBool::new(false));
    let first = has_asked.clone();
    let service =
        hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            let server = server.clone();
            first.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(caller.clone());
            async move { Ok::<_, std::convert::Infallible>(server.handle(request).await) }
        });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .max_buf_size(CONNECTION_BUFFER)
        .header_read_timeout(idle_time);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_send_buf_size(CONNECTION_BUFFER)
        .max_concurrent_streams(1_000)
        .max_header_list_size(64 * 1024)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let connection = builder
        .serve_connection(TokioIo::new(stream), service)
        .into_owned();
    tokio::select! {
        ended = watcher.watch(connection) => ended,
        () = first_request_timeout(&has_asked, timeout) => Err("nothing was asked in time".into()),
    }
}

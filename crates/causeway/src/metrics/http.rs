//! Metrics over HTTP/1.1: `GET /metrics`, and nothing else.
//!
//! A request is read with limits of size and time, answered and its connection closed; clients beyond a few wait in the
//! listener's backlog. Nothing can be changed here, so there is nothing to protect but time.

use super::Format;
use crate::control::{Ask, Entrance, Question};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a request's head at most.
const MAX_HEAD: usize = 16 << 10;
/// Headers of a request at most.
const MAX_HEADERS: usize = 64;
/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients that are answered at the same time.
const MAX_CLIENTS: usize = 8;

/// Opens the socket.
///
/// # Errors
/// If the address cannot be used.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

/// Answers the clients of `listener`, who come in by `entrance`, until the process ends; the router is asked for the handler
/// `metrics`.
pub fn serve(listener: TcpListener, entrance: Arc<Entrance>, router: Arc<dyn Ask + Send + Sync>) {
    std::thread::spawn(move || {
        let clients = Arc::new(AtomicUsize::new(0));
        loop {
            if clients.load(Ordering::Relaxed) >= MAX_CLIENTS {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            entrance.wait(listener.as_fd());
            match listener.accept() {
                Ok((stream, _)) => {
                    let (router, clients) = (router.clone(), clients.clone());
                    clients.fetch_add(1, Ordering::Relaxed);
                    std::thread::spawn(move || {
                        // An error ends that client's connection and nothing else.
                        let _ = client(stream, &*router);
                        clients.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                // Out of descriptors, say: wait for some to be closed.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    });
}

fn client(mut stream: TcpStream, router: &dyn Ask) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let limit = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let reply = loop {
        let left = limit.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break status(408, "Request Timeout", "the request did not come in time\n");
        }
        stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 2048];
        let n = match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut
                ) =>
            {
                continue;
            }
            Err(e) => return Err(e),
        };
        head.extend_from_slice(&bytes[..n]);
        match answer(&head, router) {
            Some(reply) => break reply,
            None if head.len() > MAX_HEAD => {
                break status(431, "Request Header Fields Too Large", "the request is too long\n");
            }
            None => {}
        }
    };
    stream.write_all(&reply)
}

/// The reply to a request of which `head` is the begin; `None` = not all of it is there.
fn answer(head: &[u8], router: &dyn Ask) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(e) => return Some(status(400, "Bad Request", &format!("no request of HTTP: {e}\n"))),
    }
    let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    if path != "/metrics" {
        return Some(status(404, "Not Found", "there is only /metrics\n"));
    }
    if !matches!(method, "GET" | "HEAD") {
        return Some(status(405, "Method Not Allowed", "only GET and HEAD\n"));
    }
    let accept = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("accept"));
    let accept: Vec<_> = accept.map(|h| String::from_utf8_lossy(h.value)).collect();
    let format = Format::accepted(&accept.join(","));
    Some(match router.ask(Question::Read("metrics".to_owned(), format.name().to_owned())) {
        Ok(text) => reply(200, "OK", format.content_type(), &text, method == "HEAD"),
        Err(e) => status(503, "Service Unavailable", &format!("{e}\n")),
    })
}

fn status(code: u16, reason: &str, text: &str) -> Vec<u8> {
    reply(code, reason, "text/plain; charset=utf-8", text, false)
}

fn reply(code: u16, reason: &str, content_type: &str, body: &str, head_only: bool) -> Vec<u8> {
    let allow = if code == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {code} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    let body = if head_only { "" } else { body };
    [head.as_bytes(), body.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::handler::HandlerError;
    use proptest::prelude::*;

    /// Says which format it was asked for.
    struct Router;

    impl Ask for Router {
        fn ask(&self, question: Question) -> Result<String, HandlerError> {
            match question {
                Question::Read(handler, format) if handler == "metrics" => Ok(format!("in {format}\n")),
                _ => Err(HandlerError::Gone),
            }
        }
    }

    fn ask(request: &str) -> String {
        answer(request.as_bytes(), &Router).map_or("more".to_owned(), |r| String::from_utf8(r).unwrap())
    }

    #[test]
    fn only_metrics_can_be_had() {
        let open = "GET /metrics HTTP/1.1\r\nHost: a\r\nACCEPT: application/openmetrics-text\r\n\r\n";
        assert!(
            ask(open)
                .starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0")
        );
        assert!(ask(open).ends_with("Content-Length: 15\r\nConnection: close\r\n\r\nin openmetrics\n"));
        assert!(ask("GET /metrics?x=1 HTTP/1.0\r\n\r\n").ends_with("\r\n\r\nin prometheus\n"));
        let head = ask("HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 14\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        let post = ask("POST /metrics HTTP/1.1\r\n\r\n");
        assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("\r\nAllow: GET, HEAD\r\n"), "{post}");
        assert!(ask("\u{1}\r\n\r\n").starts_with("HTTP/1.1 400 "));
        for end in 0..open.len() {
            assert_eq!(ask(&open[..end]), "more", "{:?}", &open[..end]);
        }
    }

    #[test]
    fn a_client_is_answered_and_a_slow_one_does_not_keep_others() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, Entrance::new().unwrap(), Arc::new(Router));
        let _slow = TcpStream::connect(address).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        stream.write_all(b"\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("in prometheus\n"), "{text}");

        let mut long = TcpStream::connect(address).unwrap();
        long.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
        // It may be answered, and closed, before all of it is sent.
        let _ = long.write_all(&vec![b'x'; MAX_HEAD + 2048]);
        let mut bytes = Vec::new();
        let _ = long.read_to_end(&mut bytes);
        assert!(
            bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 431 "),
            "{:?}",
            String::from_utf8_lossy(&bytes)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_or_waited_for(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(reply) = answer(&bytes, &Router) {
                prop_assert!(reply.starts_with(b"HTTP/1.1 "));
            }
        }
    }
}

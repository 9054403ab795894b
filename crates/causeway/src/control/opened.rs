//! Control sockets that the graph's ControlSocket elements have.

use super::server::serve;
use super::socket::Listener;
use super::watch::{Watch, Watched};
use super::{Ask, Entrance, Question};
use causeway_elements::control::{CONTROL, ControlPlace, OpenControl, OpenedControl};
use causeway_engine::handler::HandlerError;
use causeway_engine::{Error, Persistent};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// A router's desk, which is there once its elements are.
type Desk = Arc<OnceLock<Arc<dyn Ask + Send + Sync>>>;

/// Opens the control sockets of elements; those of the graphs before and after a hot swap share them.
#[derive(Default)]
pub struct Opener {
    desk: Desk,
    sockets: Mutex<HashMap<ControlPlace, Weak<Socket>>>,
}

/// A socket with its clients' rights.
struct Socket {
    listener: Listener,
    gate: Arc<Gate>,
}

/// What clients of one socket ask goes through here.
#[derive(Default)]
struct Gate {
    desk: Desk,
    read_only: AtomicBool,
    verbose: AtomicBool,
    /// The element whose handlers are all there are, if there is one.
    proxy: Mutex<Option<String>>,
    clients: AtomicUsize,
}

/// An element's part of a socket.
struct Part(Arc<Socket>);

impl Opener {
    /// One that elements which are configured with `values` find.
    pub fn new(values: &Persistent) -> Arc<Opener> {
        let opener = Arc::new(Opener::default());
        let shared: Arc<dyn OpenControl> = opener.clone();
        values.lock().unwrap_or_else(PoisonError::into_inner).insert(CONTROL.to_owned(), Arc::new(shared));
        opener
    }

    /// From now on `router` answers, also those who have asked before.
    pub fn answer_by(&self, router: Arc<dyn Ask + Send + Sync>) {
        // Called once.
        let _ = self.desk.set(router);
    }
}

impl OpenControl for Opener {
    fn open(&self, place: &ControlPlace) -> Result<Box<dyn OpenedControl>, Error> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.retain(|_, socket| socket.strong_count() > 0);
        if let Some(socket) = sockets.get(place).and_then(Weak::upgrade) {
            return Ok(Box::new(Part(socket)));
        }
        let listener = match place {
            ControlPlace::Tcp { address, or_next } => Listener::tcp(*address, *or_next)
                .map_err(|e| Error::caused_by(e).of(format_args!("port {}", address.port()))),
            ControlPlace::Unix(path) => {
                Listener::unix(path).map_err(|e| Error::caused_by(e).of(path.display()))
            }
            ControlPlace::Given(descriptor) => Listener::given(*descriptor)
                .map_err(|e| Error::caused_by(e).of(format_args!("descriptor {descriptor}"))),
        }?;
        if let (ControlPlace::Tcp { address, .. }, Some(port)) = (place, listener.port()) {
            say_who_may_connect(SocketAddr::new(address.ip(), port));
        }
        let gate = Arc::new(Gate { desk: self.desk.clone(), ..Gate::default() });
        let entrance = Entrance::new().map_err(Error::caused_by)?;
        serve(&listener, entrance, gate.clone()).map_err(Error::caused_by)?;
        let socket = Arc::new(Socket { listener, gate });
        sockets.insert(place.clone(), Arc::downgrade(&socket));
        Ok(Box::new(Part(socket)))
    }
}

/// The protocol knows no passwords, so it matters whom it is open to.
fn say_who_may_connect(address: SocketAddr) {
    if address.ip().is_loopback() {
        log::info!("control port {address}, for this machine only");
    } else {
        log::warn!("control port {address}, for every machine that reaches it");
    }
}

impl OpenedControl for Part {
    fn port(&self) -> Option<u16> {
        self.0.listener.port()
    }

    fn allow(&self, writes: bool, verbose: bool, proxy: Option<&str>) {
        *self.0.gate.proxy.lock().unwrap_or_else(PoisonError::into_inner) = proxy.map(str::to_owned);
        self.0.gate.read_only.store(!writes, Relaxed);
        self.0.gate.verbose.store(verbose, Relaxed);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.listener.close();
    }
}

impl Gate {
    fn desk(&self) -> &(dyn Ask + Send + Sync) {
        &**self.desk.wait()
    }

    /// The answer of the router, or of the element that stands for it.
    fn answer(&self, mut question: Question) -> Result<String, HandlerError> {
        let proxy = self.proxy.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(proxy) = proxy else { return self.desk().ask(question) };
        let handler = question.handler_mut();
        let asked = std::mem::replace(handler, format!("{proxy}.{handler}"));
        self.desk().ask(question).map_err(|error| match error {
            HandlerError::NoHandler(_) => HandlerError::NoProxied(asked),
            other => other,
        })
    }
}

impl Ask for Gate {
    fn ask(&self, question: Question) -> Result<String, HandlerError> {
        let denied = self.read_only.load(Relaxed);
        match question {
            // What cannot be written at all is said first.
            Question::Write(handler, _) | Question::CheckWrite(handler) if denied => {
                self.answer(Question::CheckWrite(handler.clone()))?;
                Err(HandlerError::Denied(handler))
            }
            other => self.answer(other),
        }
    }

    fn client(&self, there: bool) {
        let before =
            if there { self.clients.fetch_add(1, Relaxed) } else { self.clients.fetch_sub(1, Relaxed) };
        if self.verbose.load(Relaxed) {
            let (what, now) = if there { ("opened", before + 1) } else { ("closed", before - 1) };
            log::info!("control connection {what}; there are {now}");
        }
    }

    fn watch(&self, watch: Watch) -> Result<Watched, HandlerError> {
        self.desk().watch(watch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with the handler that is asked for, if the element `s` has it.
    struct Echo;

    impl Ask for Echo {
        fn ask(&self, mut question: Question) -> Result<String, HandlerError> {
            let handler = question.handler_mut().clone();
            match handler.starts_with("s.") && !handler.ends_with(".none") {
                true => Ok(handler),
                false => Err(HandlerError::NoHandler(handler)),
            }
        }
    }

    #[test]
    fn one_element_stands_for_all() {
        let gate = Gate::default();
        assert!(gate.desk.set(Arc::new(Echo)).is_ok());
        let answer = |question| gate.ask(question).map_err(|e| e.to_string());
        let read = |handler: &str| answer(Question::Read(handler.to_owned(), String::new()));
        let write = || answer(Question::Write("c.count".to_owned(), String::new()));
        assert_eq!(read("c.count"), Err("No handler named 'c.count'".to_owned()));
        *gate.proxy.lock().unwrap() = Some("s".to_owned());
        assert_eq!([read("c.count"), write()], [(); 2].map(|()| Ok("s.c.count".to_owned())));
        assert_eq!(read("c.none"), Err("No proxied handler named 'c.none'".to_owned()));
        gate.read_only.store(true, Relaxed);
        assert_eq!(write(), Err("Permission denied for 'c.count'".to_owned()));
    }
}

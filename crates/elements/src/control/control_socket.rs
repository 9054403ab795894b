//! ControlSocket.

use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::values;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "ControlSocket",
    category: "control",
    summary: "lets other programs read and write handlers",
    ports: "0/0",
    doc: "Listens for programs that speak Click's control protocol, version 1.3: on TCP port PORT if TYPE is `tcp`, or \
          on the UNIX socket FILENAME if it is `unix`; with `socket` it speaks to who has the other end of the socket \
          that the parent has opened as descriptor FD. A TCP port is open to every machine that reaches it, and the \
          protocol knows no passwords, unless LOCALHOST is true or PORT names an address. If the place is taken the \
          router does not start, or with RETRIES tries again every second, and stops when all were in vain. A \
          hot swap to a ControlSocket of the same place keeps the connections. With PROXY the handler E.H of who asks is the \
          handler `E.H` of that element, as a Script of type PROXY has it, and there are no others.",
    args: Own::ARGS,
    handlers: handlers!(
        Own::HANDLERS,
        &[reads("port", "the TCP port that it listens on"), reads("filename", "FILENAME")]
    ),
    example: "ControlSocket(unix, /tmp/causeway-example.sock); InfiniteSource(LIMIT 9, STOP true) -> Discard;",
    see: &["Counter"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

/// Key of the [`OpenControl`] among the values that outlive a hot swap: an `Arc<dyn OpenControl>` in an `Arc`.
pub const CONTROL: &str = "control sockets";

/// The only timer: the next attempt.
const RETRY: u32 = 0;
const RETRY_NS: u64 = 1_000_000_000;

/// Where programs connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControlPlace {
    /// At an address and port, or with `or_next` at the first free port from there.
    Tcp {
        /// Address and port.
        address: SocketAddr,
        /// Whether the next free one will do.
        or_next: bool,
    },
    /// In the file system.
    Unix(PathBuf),
    /// Nowhere: the parent has connected a socket, and left it as this descriptor.
    Given(i32),
}

/// Who opens control sockets, and answers there: the program that owns the router.
pub trait OpenControl: Send + Sync {
    /// Listens at `place`. If the elements of the graph before listen there, they and the new ones share the socket.
    ///
    /// # Errors
    /// What keeps it from listening.
    fn open(&self, place: &ControlPlace) -> Result<Box<dyn OpenedControl>, Error>;
}

/// A control socket that listens; dropping the last one of a place closes it.
pub trait OpenedControl: Send {
    /// The port, if it is TCP's.
    fn port(&self) -> Option<u16>;

    /// From now on programs may write handlers, or may not; whether each connection is logged; whose handlers all
    /// handlers are, if they are one element's.
    fn allow(&self, writes: bool, verbose: bool, proxy: Option<&str>);
}

settings! {
    struct Own {
        kind: String = required("TYPE", "`tcp`, `unix` or `socket`", "what to listen on");
        place: Option<Word> = optional("PORT", "port or file name", "port number, with `+` if the next free one will do, and with an \
            address in front if it is not to be open at all of the machine's; the name of a UNIX socket"), or(None);
        file: Option<Word> = keyword("FILENAME", "socket name", "the name of a UNIX socket, instead of PORT"), or(None);
        descriptor: Option<Word> = keyword("FD", "number", "the descriptor of a connected socket, instead of PORT"), or(None);
        read_only: bool = keyword("READONLY", "boolean", "whether handlers can only be read; default false"), or(false);
        proxy: Option<String> = keyword("PROXY", "element name", "whose handlers are read and written in place of all others; default none"), or(None);
        verbose: bool = keyword("VERBOSE", "boolean", "whether connections are logged; default false"), or(false);
        local: bool = keyword("LOCALHOST", "boolean", "whether only this machine can connect; default false"), or(false);
        retries: i32 = keyword("RETRIES", "number", "how often it tries again, a second apart; default 0"), or(0);
        retry_warnings: bool = keyword("RETRY_WARNINGS", "boolean", "whether each failure is logged, not only the last; default true"), or(true);
    }
}

/// A word without quotes.
struct Word(String);

impl Value for Word {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        values::filename(text, std::env::var("HOME").ok().as_deref()).map(Word).map_err(Error::caused_by)
    }

    fn placeholder() -> Self {
        Word(String::new())
    }
}

struct ControlSocket {
    own: Own,
    /// The name of the element that PROXY names.
    proxy: Option<String>,
    place: ControlPlace,
    opener: Option<Arc<Arc<dyn OpenControl>>>,
    opened: Option<Box<dyn OpenedControl>>,
    /// Attempts that are left.
    retries: i32,
}

#[expect(clippy::disallowed_methods, reason = "taken when a graph is built")]
fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    let place = place(&own, conf);
    let proxy = own.proxy.as_ref().and_then(|name| proxy(name, conf));
    conf.finish()?;
    let place = place.ok_or(Invalid)?;
    let (name, key) = (conf.name().clone(), format!("controls {place:?}"));
    let owner = conf.env.shared(&key, || name.clone()).ok_or(Invalid)?;
    if *owner != name {
        conf.error(format!("'{owner}' listens there already"));
        return Err(Invalid);
    }
    let values = conf.env.persistent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let opener = values.get(CONTROL).and_then(|value| value.clone().downcast().ok());
    drop(values);
    let retries = own.retries;
    Ok(Box::new(ControlSocket { own, proxy, place, opener, opened: None, retries }))
}

/// The full name of the element that PROXY names. `None` if there is none, which is recorded.
fn proxy(name: &str, conf: &mut Conf<'_>) -> Option<String> {
    let found = conf.element(name).map(|(element, _)| element.to_string());
    if found.is_none() {
        conf.bad_argument("PROXY", "does not name an element");
    }
    found
}

/// Where to listen. `None` if the arguments do not say it, which is recorded.
fn place(own: &Own, conf: &mut Conf<'_>) -> Option<ControlPlace> {
    const MISSING: &str = "required argument missing";
    let port = own.place.as_ref().map(|word| word.0.as_str());
    match own.kind.to_ascii_uppercase().as_str() {
        "" => None,
        "TCP" => {
            let Some(port) = port else {
                conf.bad_argument("PORT", MISSING);
                return None;
            };
            let place = tcp_place(port, own.local);
            if place.is_none() {
                conf.error("PORT requires TCP port");
            }
            place
        }
        "UNIX" => {
            let file = own.file.as_ref().map(|word| word.0.as_str()).or(port);
            if file.is_none() {
                conf.bad_argument("FILENAME", MISSING);
            }
            file.map(|file| ControlPlace::Unix(file.into()))
        }
        "SOCKET" => {
            let Some(text) = own.descriptor.as_ref().map(|word| word.0.as_str()).or(port) else {
                conf.bad_argument("FD", MISSING);
                return None;
            };
            let descriptor = text.parse().ok().filter(|descriptor| *descriptor >= 0);
            if descriptor.is_none() {
                conf.bad_argument("FD", "invalid number");
            }
            descriptor.map(ControlPlace::Given)
        }
        other => {
            conf.error(format!("unknown socket type '{other}'"));
            None
        }
    }
}

/// Where to listen for PORT; `None` if it is no port.
fn tcp_place(text: &str, local: bool) -> Option<ControlPlace> {
    let (text, or_next) = text.strip_suffix('+').map_or((text, false), |text| (text, true));
    let ip = IpAddr::from(if local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED });
    let port = |port: &u16| *port > 0 || !or_next;
    let address =
        text.parse().ok().filter(port).map(|port| SocketAddr::new(ip, port)).or_else(|| text.parse().ok());
    address.map(|address| ControlPlace::Tcp { address, or_next })
}

impl ControlSocket {
    fn open(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let Some(opener) = &self.opener else {
            log::warn!("{}: nobody answers on control sockets here", cx.name());
            return Ok(());
        };
        match opener.open(&self.place) {
            Ok(opened) => {
                self.opened = Some(opened);
                Ok(())
            }
            Err(why) if self.retries > 0 => {
                if self.own.retry_warnings {
                    log::warn!("{}: {why} ({} left)", cx.name(), self.retries);
                }
                self.retries -= 1;
                let now_ns = cx.now_ns();
                cx.set_timer(RETRY, now_ns + RETRY_NS);
                Ok(())
            }
            Err(why) => Err(why),
        }
    }
}

impl Element for ControlSocket {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.open(cx)
    }

    fn commit(&mut self, _cx: &mut Cx<'_>) {
        if let Some(opened) = &self.opened {
            opened.allow(!self.own.read_only, self.own.verbose, self.proxy.as_deref());
        }
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        match self.open(cx) {
            Ok(()) => self.commit(cx),
            Err(why) => {
                log::error!("{}: {why}", cx.name());
                cx.stop_driver();
            }
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        match (handler, &self.place) {
            ("filename", ControlPlace::Unix(path)) => Ok(path.display().to_string()),
            ("port", ControlPlace::Tcp { address, .. }) => {
                let port = self.opened.as_ref().and_then(|opened| opened.port());
                Ok(port.unwrap_or(address.port()).to_string())
            }
            _ => Err(Error::new(format!("its place has no {handler}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::Persistent;
    use causeway_engine::harness::{Harness, Ports};
    use std::sync::Mutex;

    /// Has so many places taken, and writes down what is asked of it.
    #[derive(Default)]
    struct Fake {
        refusals: Mutex<u32>,
        log: Arc<Mutex<Vec<String>>>,
    }

    struct Opened(Arc<Mutex<Vec<String>>>);

    impl OpenControl for Fake {
        fn open(&self, place: &ControlPlace) -> Result<Box<dyn OpenedControl>, Error> {
            let mut refusals = self.refusals.lock().unwrap();
            if *refusals > 0 {
                *refusals -= 1;
                return Err(Error::new("taken"));
            }
            self.log.lock().unwrap().push(format!("{place:?}"));
            Ok(Box::new(Opened(self.log.clone())))
        }
    }

    impl OpenedControl for Opened {
        fn port(&self) -> Option<u16> {
            Some(7_001)
        }

        fn allow(&self, writes: bool, verbose: bool, proxy: Option<&str>) {
            assert_eq!(proxy, None);
            self.0.lock().unwrap().push(format!("{writes} {verbose}"));
        }
    }

    /// What was asked, a line each.
    type Log = Arc<Mutex<Vec<String>>>;

    fn start(config: &str, refusals: u32) -> (Result<Harness, Vec<String>>, Log) {
        let fake = Fake { refusals: Mutex::new(refusals), ..Fake::default() };
        let (log, values) = (fake.log.clone(), Persistent::default());
        let opener: Arc<dyn OpenControl> = Arc::new(fake);
        values.lock().unwrap().insert(CONTROL.to_owned(), Arc::new(opener));
        (Harness::with_values(&SPEC, config, &Ports::default(), values), log)
    }

    #[test]
    fn it_listens_where_it_is_told_to() {
        for (config, place, allowed) in [
            ("tcp, 7000+", "Tcp { address: 0.0.0.0:7000, or_next: true }", "true false"),
            ("TCP, 7000, LOCALHOST true", "Tcp { address: 127.0.0.1:7000, or_next: false }", "true false"),
            ("TCP, [::1]:7000, READONLY true", "Tcp { address: [::1]:7000, or_next: false }", "false false"),
            ("unix, \"/tmp/x\", VERBOSE true", "Unix(\"/tmp/x\")", "true true"),
            ("socket, 5", "Given(5)", "true false"),
            ("socket, FD 5", "Given(5)", "true false"),
        ] {
            let (h, log) = start(config, 0);
            assert!(h.is_ok());
            assert_eq!(*log.lock().unwrap(), [place, allowed], "{config}");
        }
        let mut h = start("TCP, 7000+", 0).0.unwrap();
        assert_eq!((h.read("port").unwrap(), h.read("filename").is_err()), ("7001".to_owned(), true));
        assert_eq!(start("unix, /tmp/x", 0).0.unwrap().read("filename").unwrap(), "/tmp/x");
    }

    #[test]
    fn what_cannot_be_is_named() {
        let error = |config: &str| start(config, 9).0.err().unwrap();
        for wrong in ["TCP, x", "TCP, 70000", "TCP, 0+"] {
            assert_eq!(error(wrong), ["PORT requires TCP port"], "{wrong}");
        }
        assert_eq!(error("udp, 5"), ["unknown socket type 'UDP'"]);
        assert_eq!(error("TCP"), ["PORT: required argument missing"]);
        assert_eq!(error("UNIX"), ["FILENAME: required argument missing"]);
        assert_eq!(error("SOCKET"), ["FD: required argument missing"]);
        assert_eq!(error("SOCKET, -1"), ["FD: invalid number"]);
        assert_eq!(error("TCP, 7000, PROXY nobody"), ["PROXY: does not name an element"]);
        assert_eq!(error(""), ["TYPE: required argument missing"]);
        assert_eq!(error("TCP, 7000"), ["taken"]);
    }

    #[test]
    fn it_tries_again_as_often_as_it_may() {
        for (refusals, stopped) in [(2, false), (3, true)] {
            let (h, log) = start("TCP, 7000, RETRIES 2, RETRY_WARNINGS false", refusals);
            let mut h = h.unwrap();
            h.advance(2_500_000_000);
            assert_eq!((h.stopped(), log.lock().unwrap().len()), (stopped, if stopped { 0 } else { 2 }));
        }
    }
}

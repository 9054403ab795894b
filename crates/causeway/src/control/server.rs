//! Gives each client of a socket a thread; there are few of them, and none touches a packet.

use super::entrance::Entrance;
use super::input::Input;
use super::protocol::{self, Ask, Reply};
use super::socket::Listener;
use super::watch::{self, Request};
use causeway_engine::{Error, unpin};
use rustix::net::{Shutdown, shutdown};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// A client's connection.
pub trait Stream: Read + Write + Send + 'static {
    /// What is written fails when the client takes nothing for so long.
    fn set_write_patience(&self, patience: Duration) -> io::Result<()>;

    /// Ends it, also for those that have a copy.
    fn hang_up(&self);
}

impl Stream for UnixStream {
    fn set_write_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(patience))
    }

    fn hang_up(&self) {
        // The client may have done so.
        let _ = shutdown(self, Shutdown::Both);
    }
}

impl Stream for TcpStream {
    fn set_write_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(patience))
    }

    fn hang_up(&self) {
        // As above.
        let _ = shutdown(self, Shutdown::Both);
    }
}

/// Serves one client in a thread of its own.
fn attend<S: Stream>(input: S, output: S, router: Arc<dyn Ask + Send + Sync>) {
    // An error ends that client's connection and nothing else.
    std::thread::spawn(move || {
        unpin();
        router.client(true);
        let served = converse(Input::new(input), output, &*router);
        router.client(false);
        served
    });
}

/// Serves one client, also one that watches packets.
fn converse<S: Stream>(mut input: Input<S>, mut output: S, router: &dyn Ask) -> io::Result<()> {
    let Some(request) = client(&mut input, &mut output, router)? else { return Ok(()) };
    let answers = move |heard: &dyn Fn()| {
        while let Ok(Some(_)) = input.line() {
            heard();
        }
    };
    watch::serve(request, output, router, answers)
}

/// Serves clients of a copy of `listener`, who come in by `entrance`, until it is closed; questions go to `router`.
pub fn serve(
    listener: &Listener,
    entrance: Arc<Entrance>,
    router: Arc<dyn Ask + Send + Sync>,
) -> io::Result<()> {
    match listener {
        Listener::Unix { listener: l, .. } => {
            let l = l.try_clone()?;
            let next = move || {
                entrance.wait(l.as_fd());
                l.accept().and_then(|(s, _)| Ok((s.try_clone()?, s)))
            };
            accept(next, router);
        }
        Listener::Given(stream) => attend(stream.try_clone()?, stream.try_clone()?, router),
        Listener::Tcp(l) => {
            let l = l.try_clone()?;
            let next = move || {
                entrance.wait(l.as_fd());
                l.accept().and_then(|(s, _)| Ok((s.try_clone()?, s)))
            };
            accept(next, router);
        }
    }
    Ok(())
}

fn accept<S: Stream>(
    mut next: impl FnMut() -> io::Result<(S, S)> + Send + 'static,
    router: Arc<dyn Ask + Send + Sync>,
) {
    std::thread::spawn(move || {
        unpin();
        loop {
            match next() {
                Ok((input, output)) => attend(input, output, router.clone()),
                // Somebody has shut it down.
                Err(e) if e.kind() == ErrorKind::InvalidInput => return,
                // Out of descriptors, say: wait for some to be closed.
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(100)),
            }
        }
    });
}

/// Serves one client until it goes or wants to watch packets. What it sends is carried out only when all of it is here: a
/// client that goes away in the middle of a line or of its data has asked for nothing.
fn client(
    input: &mut Input<impl Read>,
    output: &mut impl Write,
    router: &dyn Ask,
) -> io::Result<Option<Result<Request, Error>>> {
    output.write_all(protocol::GREETING.as_bytes())?;
    while let Some(line) = input.line()? {
        if let Some(request) = Request::of_line(&line) {
            return Ok(Some(request));
        }
        let bytes = match protocol::line(&line, router) {
            None => continue,
            Some(Reply::Send(bytes)) => bytes,
            Some(Reply::Close(bytes)) => return output.write_all(&bytes).map(|()| None),
            Some(Reply::NeedBytes(n, pending)) => match input.data(n)? {
                Some(data) => pending.data(&data, router),
                None => return Ok(None),
            },
            Some(Reply::NeedUntil(end, pending)) => match input.lines_until(&end, protocol::MAX_DATA)? {
                Some(data) => pending.data(&data, router),
                None => return Ok(None),
            },
        };
        output.write_all(&bytes)?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Question;
    use super::*;
    use causeway_engine::handler::HandlerError;
    use std::os::fd::AsRawFd;
    use std::sync::Mutex;

    /// Writes down what it is asked.
    #[derive(Default)]
    struct Asked(Mutex<Vec<Question>>);

    impl Ask for Asked {
        fn ask(&self, question: Question) -> Result<String, HandlerError> {
            self.0.lock().unwrap().push(question);
            Ok(String::new())
        }
    }

    /// What a client that sends this and goes away has asked.
    fn asked(sent: &str) -> Vec<Question> {
        let router = Asked::default();
        client(&mut Input::new(sent.as_bytes()), &mut io::sink(), &router).unwrap();
        router.0.into_inner().unwrap()
    }

    fn write(handler: &str, value: &str) -> Question {
        Question::Write(handler.to_owned(), value.to_owned())
    }

    #[test]
    fn a_text_that_ends_early_is_not_carried_out() {
        let config = "InfiniteSource -> Counter -> Queue;";
        let whole = format!("WRITEDATA hotconfig {}\r\n{config}", config.len());
        assert_eq!(asked(&whole), [write("hotconfig", config)]);
        for (whole, what) in [
            (whole.as_str(), write("hotconfig", config)),
            ("WRITE s.switch 10\r\n", write("s.switch", "10")),
            ("WRITEUNTIL h EOF\r\na\r\nb\r\nEOF\r\n", write("h", "a\nb\n")),
            ("READDATA c.count 3\r\n1 2", Question::Read("c.count".to_owned(), "1 2".to_owned())),
            ("READUNTIL c.count .\n1\n.\n", Question::Read("c.count".to_owned(), "1\n".to_owned())),
        ] {
            // The end of the last line may be CR alone.
            let needed = whole.len() - usize::from(whole.ends_with("\r\n"));
            for sent in 0..whole.len() {
                let expected = if sent < needed { vec![] } else { vec![what.clone()] };
                assert_eq!(asked(&whole[..sent]), expected, "{:?}", &whole[..sent]);
            }
            assert_eq!(asked(whole), [what]);
        }
    }

    /// Gives one byte at a time, as a slow network may.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1).min(buffer.len());
            self.0.read(&mut buffer[..n])
        }
    }

    #[test]
    fn an_end_of_line_that_comes_in_two_parts_is_no_data() {
        let router = Asked::default();
        let mut input = Input::new(Slow(b"WRITEDATA h 3\r\na\nbWRITEUNTIL h .\r\nx\r\n\r\n.\r\n"));
        client(&mut input, &mut io::sink(), &router).unwrap();
        assert_eq!(*router.0.lock().unwrap(), [write("h", "a\nb"), write("h", "x\n\n")]);
    }

    #[test]
    fn a_socket_of_the_parents_has_one_client() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let listener = Listener::given(ours.as_raw_fd()).unwrap();
        serve(&listener, Entrance::new().unwrap(), Arc::new(Asked::default())).unwrap();
        let mut greeting = vec![0; protocol::GREETING.len()];
        theirs.read_exact(&mut greeting).unwrap();
        assert_eq!((greeting.as_slice(), listener.port()), (protocol::GREETING.as_bytes(), None));
        theirs.write_all(b"QUIT\r\n").unwrap();
        let mut rest = [0; 14];
        theirs.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"200 Goodbye!\r\n");
        assert!(Listener::given(i32::MAX).is_err());
    }
}

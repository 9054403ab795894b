//! Listens on a socket and gives each client a thread; there are few of them, and none touches a packet.

use super::protocol::{self, Ask, Reply};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of one command line at most.
const MAX_LINE: u64 = 64 << 10;

/// A listening control socket. A UNIX socket's file is removed when it is dropped.
#[derive(Debug)]
pub enum Listener {
    /// In the file system.
    Unix(UnixListener, PathBuf),
    /// On the loopback interface.
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at `path`. A socket file that nobody listens on any more is replaced; one that is in use is an error.
    pub fn unix(path: &Path) -> io::Result<Listener> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        if UnixStream::connect(path).is_ok() {
            let text = "another router listens there; stop it, or give --socket another path";
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        // Writing a handler changes the router: only its owner may.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Listener::Unix(listener, path.to_owned()))
    }

    /// Listens on loopback port `port`, or with `or_next` on the first free one from there.
    pub fn tcp(port: u16, or_next: bool) -> io::Result<Listener> {
        let mut port = port;
        loop {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                Err(e) if or_next && e.kind() == io::ErrorKind::AddrInUse && port < u16::MAX => port += 1,
                other => return other.map(Listener::Tcp),
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Serves clients of a copy of `listener` until the process ends; questions go to `router`.
pub fn serve(listener: &Listener, router: Arc<dyn Ask + Send + Sync>) -> io::Result<()> {
    match listener {
        Listener::Unix(l, _) => {
            let l = l.try_clone()?;
            accept(move || l.accept().and_then(|(s, _)| Ok((s.try_clone()?, s))), router);
        }
        Listener::Tcp(l) => {
            let l = l.try_clone()?;
            accept(move || l.accept().and_then(|(s, _)| Ok((s.try_clone()?, s))), router);
        }
    }
    Ok(())
}

fn accept<S: Read + Write + Send + 'static>(
    mut next: impl FnMut() -> io::Result<(S, S)> + Send + 'static,
    router: Arc<dyn Ask + Send + Sync>,
) {
    std::thread::spawn(move || {
        loop {
            match next() {
                Ok((input, output)) => {
                    let router = router.clone();
                    // An error ends that client's connection and nothing else.
                    std::thread::spawn(move || client(input, output, &*router));
                }
                // Out of descriptors, say: wait for some to be closed.
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(100)),
            }
        }
    });
}

fn client(input: impl Read, mut output: impl Write, router: &dyn Ask) -> io::Result<()> {
    let mut input = BufReader::new(input);
    output.write_all(protocol::GREETING.as_bytes())?;
    while let Some(line) = read_line(&mut input)? {
        let bytes = match protocol::line(&line, router) {
            None => continue,
            Some(Reply::Send(bytes)) => bytes,
            Some(Reply::Close(bytes)) => return output.write_all(&bytes),
            Some(Reply::NeedBytes(n, pending)) => {
                let mut data = Vec::new();
                input.by_ref().take(n as u64).read_to_end(&mut data)?;
                pending.data(&String::from_utf8_lossy(&data), router)
            }
            Some(Reply::NeedUntil(end, pending)) => {
                let mut data = String::new();
                while let Some(line) = read_line(&mut input)?.filter(|l| l.trim_end() != end) {
                    data += &line;
                    if data.len() > protocol::MAX_DATA {
                        return Ok(());
                    }
                }
                pending.data(&data, router)
            }
        };
        output.write_all(&bytes)?;
    }
    Ok(())
}

/// The next line with its end, which is CR, LF or both; `None` at the end of input or after a line too long.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        match buffer.iter().position(|&b| b == b'\n' || b == b'\r') {
            Some(i) => {
                let carriage = buffer[i] == b'\r';
                bytes.extend_from_slice(&buffer[..i]);
                bytes.push(b'\n');
                // LF after CR belongs to the same end of line, if it is here already; else an empty line follows,
                // which commands ignore.
                let both = carriage && buffer.get(i + 1) == Some(&b'\n');
                input.consume(i + 1 + both as usize);
                return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()));
            }
            None => {
                let n = buffer.len();
                bytes.extend_from_slice(buffer);
                input.consume(n);
                if bytes.len() as u64 > MAX_LINE {
                    return Ok(None);
                }
            }
        }
    }
    Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

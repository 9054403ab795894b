//! The sockets that routers are asked at, and their files.

use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, bind, getpeername, listen, shutdown,
    socket_with,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A listening control socket. A UNIX socket's file is removed when it is dropped.
#[derive(Debug)]
pub enum Listener {
    /// In the file system.
    Unix {
        /// The socket.
        listener: UnixListener,
        /// Goes with it.
        file: SocketFile,
    },
    /// On a network.
    Tcp(TcpListener),
    /// Not any more: the one client there is has been connected by the parent. Any stream does, whatever its address is.
    Given(UnixStream),
}

/// The file of a UNIX socket; removed when this is dropped, unless something else has taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode; none if it cannot be seen, and stays.
    id: Option<(u64, u64)>,
    /// Whether it is this process's to remove.
    own: AtomicBool,
}

impl SocketFile {
    fn of(path: &Path, own: bool) -> io::Result<SocketFile> {
        let id = match fs::symlink_metadata(path) {
            // In a folder that this process may not look into.
            Err(e) if e.kind() == ErrorKind::PermissionDenied => None,
            found => Some(id(&found?)),
        };
        Ok(SocketFile { path: path.to_owned(), id, own: own.into() })
    }
}

impl Listener {
    /// The port, if it is TCP's.
    pub fn port(&self) -> Option<u16> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix { .. } | Listener::Given(_) => None,
        }
    }

    /// Ends listening, also by the copies that [`serve`] has made. Clients stay connected.
    pub fn close(&self) {
        let closed = match self {
            Listener::Tcp(listener) => shutdown(listener, Shutdown::Both),
            Listener::Unix { listener, .. } => shutdown(listener, Shutdown::Both),
            Listener::Given(stream) => shutdown(stream, Shutdown::Both),
        };
        if let Err(e) = closed {
            log::warn!("a control socket cannot be closed: {e}");
        }
    }

    /// The socket, if clients can come.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Listener::Unix { listener, .. } => Some(listener.as_fd()),
            Listener::Tcp(listener) => Some(listener.as_fd()),
            Listener::Given(_) => None,
        }
    }

    /// Listens at `path`, for this user alone, in a folder that is there. A socket that a router of this user has left
    /// there, and that nobody listens on any more, is replaced; nothing else is.
    pub fn unix(path: &Path) -> io::Result<Listener> {
        let bound = match bind_unix(path) {
            Err(e) if e.kind() == ErrorKind::AddrInUse => {
                remove_dead(path)?;
                bind_unix(path)
            }
            other => other,
        };
        Ok(Listener::Unix { listener: bound?, file: SocketFile::of(path, true)? })
    }

    /// A socket that another process has put at `path` and handed over. Its file is that one's, which may go on, until this
    /// one [takes](Listener::take_file) it.
    pub fn handed(socket: OwnedFd, path: &Path) -> io::Result<Listener> {
        Ok(Listener::Unix { listener: socket.into(), file: SocketFile::of(path, false)? })
    }

    /// The file of a socket that was handed over goes with this value from now on.
    pub fn take_file(&self) {
        if let Listener::Unix { file, .. } = self {
            file.own.store(true, Ordering::Relaxed);
        }
    }

    /// The socket that the parent has connected and left as `descriptor`; a copy of it.
    pub fn given(descriptor: i32) -> io::Result<Listener> {
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        let socket = pidfd_getfd(own, descriptor, PidfdGetfdFlags::empty())?;
        let connected = UnixStream::from(socket);
        // A client that is not there yet never comes.
        getpeername(&connected)?;
        Ok(Listener::Given(connected))
    }

    /// Listens on a port, or with `or_next` on the first free one from there.
    pub fn tcp(mut address: SocketAddr, or_next: bool) -> io::Result<Listener> {
        loop {
            match TcpListener::bind(address) {
                Err(e) if or_next && e.kind() == ErrorKind::AddrInUse && address.port() < u16::MAX => {
                    address.set_port(address.port() + 1);
                }
                other => return other.map(Listener::Tcp),
            }
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Writing a handler changes the router: only its owner may. Linux gives the file the mode that the socket has when
    // it is bound, so there is no moment at which others could connect.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Whether somebody listens on the socket at `path`, or may: who cannot be asked is not known to be gone.
pub fn is_heard(path: &Path) -> bool {
    let gone = |e: io::Error| matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound);
    !UnixStream::connect(path).is_err_and(gone)
}

/// Removes the socket at `path`.
///
/// # Errors
/// If it is no socket, is another user's, or somebody listens on it.
pub fn remove_dead(path: &Path) -> io::Result<()> {
    let refuse = |why: &str| Err(io::Error::new(ErrorKind::AddrInUse, why));
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.file_type().is_socket() {
        return refuse("something else than a socket is there, and stays");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refuse("the socket there is another user's");
    }
    remove_unheard(path)
}

/// As [`remove_dead`], of any user: for paths in a folder where routers alone put theirs.
///
/// # Errors
/// If it is no socket, or somebody listens on it.
pub fn remove_unheard(path: &Path) -> io::Result<()> {
    // A connection to a file that is no socket is refused, too.
    match UnixStream::connect(path) {
        Err(e) if e.kind() == ErrorKind::ConnectionRefused && is_socket(path)? => fs::remove_file(path),
        // Connected, or in a way that says that somebody is there.
        _ => Err(io::Error::new(ErrorKind::AddrInUse, "another program listens there")),
    }
}

fn is_socket(path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.file_type().is_socket())
}

fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let own = self.own.load(Ordering::Relaxed);
        if own && fs::symlink_metadata(&self.path).is_ok_and(|m| Some(id(&m)) == self.id) {
            // Somebody may remove it at the same moment.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("causeway-server-{test}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_socket_is_for_its_owner_and_goes_with_the_listener() {
        let folder = Folder::new("mode");
        let path = folder.0.join("a.sock");
        let listener = Listener::unix(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert!(UnixStream::connect(&path).is_ok());
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn the_file_of_a_socket_that_was_handed_over_is_the_others_until_it_is_taken() {
        let folder = Folder::new("handed");
        let path = folder.0.join("a.sock");
        let other = Listener::unix(&path).unwrap();
        let handed = || {
            let socket = other.socket().unwrap().try_clone_to_owned().unwrap();
            Listener::handed(socket, &path).unwrap()
        };
        drop(handed());
        assert!(UnixStream::connect(&path).is_ok(), "the other goes on");
        let taken = handed();
        taken.take_file();
        drop(taken);
        assert!(!path.exists());
    }

    #[test]
    fn only_a_dead_socket_is_replaced() {
        let folder = Folder::new("replace");
        let path = folder.0.join("a.sock");
        let refused = |path: &Path| Listener::unix(path).unwrap_err().to_string();

        fs::write(&path, "precious").unwrap();
        assert_eq!(refused(&path), "something else than a socket is there, and stays");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_file(&path).unwrap();

        fs::create_dir(&path).unwrap();
        assert_eq!(refused(&path), "something else than a socket is there, and stays");
        fs::remove_dir(&path).unwrap();

        let live = UnixListener::bind(&path).unwrap();
        let link = folder.0.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(refused(&link), "something else than a socket is there, and stays");
        assert_eq!(refused(&path), "another program listens there");
        drop(live);
        let listener = Listener::unix(&path).unwrap();

        // Whoever came later keeps what is there now.
        fs::remove_file(&path).unwrap();
        let later = Listener::unix(&path).unwrap();
        drop(listener);
        assert!(UnixStream::connect(&path).is_ok());
        drop(later);
    }

    #[test]
    fn a_dead_socket_of_another_user_stays() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root to give a file to another user");
            return;
        }
        let folder = Folder::new("foreign");
        let path = folder.0.join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        std::os::unix::fs::chown(&path, Some(1), None).unwrap();
        assert_eq!(Listener::unix(&path).unwrap_err().to_string(), "the socket there is another user's");
        assert!(path.exists());
    }
}

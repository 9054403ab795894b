//! Where connections are accepted, and where they wait while another process takes over: then they are not refused, but
//! served by whoever has the socket in the end.

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{read, write};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the closing of an entrance waits for the thread that accepts: longer than that sleeps after an error.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// It is to be closed; the thread that accepts has not seen that yet.
    Closing,
    Closed,
}

/// The entrance of one listening socket. One thread waits at it.
#[derive(Debug)]
pub struct Entrance {
    state: Mutex<State>,
    changed: Condvar,
    /// Readable while it is to be closed.
    bell: OwnedFd,
}

impl Entrance {
    /// One that is open.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Arc<Entrance>> {
        Entrance::in_state(State::Open)
    }

    /// One that is to be opened.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn closed() -> io::Result<Arc<Entrance>> {
        Entrance::in_state(State::Closing)
    }

    fn in_state(state: State) -> io::Result<Arc<Entrance>> {
        let bell = eventfd((state != State::Open).into(), EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Entrance { state: Mutex::new(state), changed: Condvar::new(), bell }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until somebody is at the `listener` and the entrance is open. Then accepting him does not wait.
    pub fn wait(&self, listener: BorrowedFd<'_>) {
        loop {
            let ways = &mut [
                PollFd::from_borrowed_fd(listener, PollFlags::IN),
                PollFd::new(&self.bell, PollFlags::IN),
            ];
            // Accepting says what is wrong.
            if poll(ways, None).is_err_and(|e| e != rustix::io::Errno::INTR) {
                return;
            }
            let rung = !ways[1].revents().is_empty();
            if !rung && !ways[0].revents().is_empty() {
                return;
            }
            if rung {
                self.stay_away();
            }
        }
    }

    /// Waits while it is closed.
    fn stay_away(&self) {
        let mut state = self.state();
        if *state == State::Closing {
            *state = State::Closed;
            self.changed.notify_all();
        }
        drop(self.changed.wait_while(state, |state| *state != State::Open));
    }

    /// From here on nobody is let in until it is opened again.
    pub fn close(&self) {
        let mut state = self.state();
        *state = State::Closing;
        // It cannot be full.
        let _ = write(&self.bell, &1u64.to_ne_bytes());
        // A thread that has ended accepts nobody either.
        drop(self.changed.wait_timeout_while(state, PATIENCE, |state| *state == State::Closing));
    }

    /// Those who wait are let in.
    pub fn open(&self) {
        let mut state = self.state();
        let _ = read(&self.bell, &mut [0; 8]);
        *state = State::Open;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn who_comes_to_a_closed_entrance_is_let_in_when_it_opens() {
        let path = std::env::temp_dir().join(format!("causeway-entrance-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let entrance = Entrance::closed().unwrap();
        let inside = entrance.clone();
        std::thread::spawn(move || {
            loop {
                inside.wait(listener.as_fd());
                listener.accept().unwrap().0.write_all(b"x").unwrap();
            }
        });
        let come = || UnixStream::connect(&path).unwrap();
        for _ in 0..3 {
            entrance.close();
            let mut waiting = come();
            waiting.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            assert!(waiting.read(&mut [0]).is_err(), "nobody lets it in");
            entrance.open();
            waiting.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            waiting.read_exact(&mut [0]).unwrap();
            come().read_exact(&mut [0]).unwrap();
        }
        std::fs::remove_file(path).unwrap();
    }
}

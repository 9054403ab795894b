//! Waiting for descriptors and for a time, by epoll(7).

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// What wakes a waiter from elsewhere.
const WAKER: u64 = u64::MAX;
/// Events taken from the kernel at a time.
const EVENTS: usize = 64;

/// A worker's descriptors.
#[derive(Debug)]
pub(crate) struct Waiter {
    epoll: OwnedFd,
    waker: Arc<Waker>,
}

/// Wakes a waiter, from any thread.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    /// Ends the wait under way, or else the next one.
    pub fn wake(&self) {
        // It can only fail when the count is at its limit, and then the waiter wakes anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

#[cfg(test)]
impl Waker {
    /// Whether somebody has woken the waiter since this was last asked.
    pub fn was_woken(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }
}

impl Waiter {
    pub fn new() -> io::Result<Waiter> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Waker(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        // Edges suffice: the count need not be read.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &waker.0, epoll::EventData::new_u64(WAKER), flags)?;
        Ok(Waiter { epoll, waker: Arc::new(waker) })
    }

    pub fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    /// From now on [`Waiter::wait`] tells `token` whenever `fd` has become readable.
    pub fn add(&self, fd: BorrowedFd<'_>, token: usize) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        match epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token as u64), flags) {
            // A plain file is always readable and cannot be waited for.
            Err(rustix::io::Errno::PERM) => Ok(()),
            other => Ok(other?),
        }
    }

    pub fn remove(&self, fd: BorrowedFd<'_>) {
        // A descriptor that is closed already is out as well.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until a descriptor is readable, somebody wakes the waiter, or `timeout` is over; to the nanosecond, as far
    /// as the kernel goes. Tells `ready` the tokens of what is readable.
    pub fn wait(&self, timeout: Option<Duration>, mut ready: impl FnMut(usize)) -> io::Result<()> {
        let timeout = timeout.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: t.subsec_nanos().into(),
        });
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => {
                let tokens = events.iter().map(|e| e.data.u64()).filter(|&t| t != WAKER);
                tokens.for_each(|token| ready(token as usize));
                Ok(())
            }
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn it_waits_for_whatever_is_first() {
        let waiter = Waiter::new().unwrap();
        let wait = |timeout: Option<Duration>| {
            let mut ready = Vec::new();
            waiter.wait(timeout, |token| ready.push(token)).unwrap();
            ready
        };
        assert_eq!(wait(Some(Duration::from_nanos(1_500))), []);
        let pipe = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        waiter.add(pipe.as_fd(), 7).unwrap();
        rustix::io::write(&pipe, &1u64.to_ne_bytes()).unwrap();
        assert_eq!(wait(None), [7]);
        let waker = waiter.waker();
        waker.wake();
        assert_eq!(wait(None), []);
        waiter.remove(pipe.as_fd());
    }
}

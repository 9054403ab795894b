//! Who keeps the right to forward, and who takes it away.
//!
//! The right is a deadline ([`Front::lease`]) that programs in the kernel and workers read. It is never given for good:
//! a [`Voucher`] is something without which forwarding would be wrong (a worker, the follower of the kernel's tables),
//! which says again and again that it is well; the deadline is the time of the oldest word plus the voucher's term. So
//! whatever stops, hangs, loops or dies, the right runs out by itself and the kernel forwards.
//!
//! An [objection](Objector::object) takes the right away at once, for as long as it stands: tables in doubt, a packet
//! filter that would be passed by. When the right was lost by somebody's silence, it comes back only when every voucher
//! has given its word anew. Loss and return are logged with their cause.
//!
//! [`account`] is the rule, without clock and thread; [`Lease`] is the thread that applies it.

mod account;

pub use account::LEFT_TO_KERNEL;
use account::{Account, News};
use causeway_netio::front::{Front, monotonic_ns};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the deadline is moved on.
const PERIOD: Duration = Duration::from_millis(100);

/// Something without which forwarding would be wrong.
#[derive(Clone)]
pub struct Voucher {
    /// What it is, for people.
    pub name: String,
    /// When it gave its word last, nanoseconds on `CLOCK_MONOTONIC`.
    pub word_ns: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// How long its word counts.
    pub term: Duration,
}

impl Voucher {
    /// How long a worker or a thread may be silent.
    pub const ALIVE: Duration = Duration::from_millis(900);
}

/// How a router is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether everybody has given his word whose word is needed.
    pub well: bool,
    /// Whether it forwards, and why not, in a line for people.
    pub text: String,
}

impl State {
    /// That of a router that is well.
    pub fn well(text: &str) -> State {
        State { well: true, text: text.to_owned() }
    }

    /// Who of `vouchers` is silent; `None` if nobody is.
    pub fn of(vouchers: &[Voucher], now_ns: u64) -> Option<State> {
        let silent = vouchers.iter().filter(|v| v.until_ns() <= now_ns);
        let names: Vec<&str> = silent.map(|v| v.name.as_str()).collect();
        (!names.is_empty())
            .then(|| State { well: false, text: format!("nothing was heard of {}", names.join(", ")) })
    }
}

/// Keeps the right to forward, as long as it is right. Dropping it gives the right up.
pub struct Lease {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    front: Arc<Front>,
    account: Mutex<Account>,
    stop: AtomicBool,
}

impl Lease {
    /// Begins to keep the right to forward behind `front`. It is not had before somebody vouches; `without` says what comes of that.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn keep(front: Arc<Front>, without: &'static str) -> io::Result<Lease> {
        front.lease().revoke();
        let account = Mutex::new(Account::new(monotonic_ns(), without));
        let shared = Arc::new(Shared { front, account, stop: AtomicBool::new(false) });
        let keeper = shared.clone();
        let thread = std::thread::Builder::new().name("lease".to_owned()).spawn(move || {
            while !keeper.stop.load(Ordering::Relaxed) {
                keeper.change(|_| ());
                std::thread::park_timeout(PERIOD);
            }
        })?;
        Ok(Lease { shared, thread: Some(thread) })
    }

    /// From now on nothing is forwarded without this one's word.
    pub fn require(&self, voucher: Voucher) {
        self.shared.change(|account| account.add(voucher));
    }

    /// How the router is, whenever it is asked.
    pub fn state(&self) -> impl Fn() -> State + Send + use<> {
        let shared = self.shared.clone();
        move || shared.account.lock().unwrap_or_else(PoisonError::into_inner).state(monotonic_ns())
    }

    /// Who may object.
    pub fn objector(&self) -> Objector {
        Objector(self.shared.clone())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was printed by itself.
            let _ = thread.join();
        }
        self.shared.front.lease().revoke();
    }
}

impl Shared {
    /// Changes the account and brings the deadline up to date, under one lock: no renewal can follow an objection.
    fn change(&self, change: impl FnOnce(&mut Account)) {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stop.load(Ordering::Relaxed) {
            // What ends now is no news.
            return self.front.lease().revoke();
        }
        change(&mut account);
        match account.settle(monotonic_ns()) {
            Some(deadline_ns) => self.front.lease().renew(deadline_ns),
            None => self.front.lease().revoke(),
        }
        for News { code, text } in account.take_news() {
            log::warn!(code = code; "{text}");
        }
    }
}

/// Takes the right to forward away and gives it back, from any thread.
#[derive(Clone)]
pub struct Objector(Arc<Shared>);

impl Objector {
    /// Takes the right away at once, until [`Objector::withdraw`] with the same `code`; `what` says why, in a line for
    /// people.
    pub fn object(&self, code: &'static str, what: impl Into<String>) {
        self.0.change(|account| account.object(code, what.into(), false));
    }

    /// As [`Objector::object`], for what is expected to pass at once; it is logged only if it does not.
    pub fn doubt(&self, code: &'static str, what: impl Into<String>) {
        self.0.change(|account| account.object(code, what.into(), true));
    }

    /// The objection of this code does not stand any more.
    pub fn withdraw(&self, code: &'static str) {
        self.0.change(|account| account.withdraw(code));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_netio::ErrorKind;
    use causeway_netio::front::Take;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn the_right_comes_and_goes_with_vouchers_and_objections() {
        let front = match Front::new(Take::TRANSIT) {
            Ok(front) => Arc::new(front),
            Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
            Err(e) => panic!("{e}"),
        };
        let stands = || front.lease().deadline().load(Ordering::Acquire) > monotonic_ns();
        let word = Arc::new(AtomicU64::new(0));
        let speak = || word.store(monotonic_ns(), Ordering::Release);
        let becomes = |want: bool| {
            let reached = (0..500).any(|_| {
                // On a busy machine a word may be too old before anybody has read it.
                if want {
                    speak();
                }
                std::thread::sleep(Duration::from_millis(10));
                stands() == want
            });
            assert!(reached, "the right does not become {want}");
        };
        let lease = Lease::keep(front.clone(), LEFT_TO_KERNEL).expect("a thread");
        assert!(!stands());
        let spoken = word.clone();
        let word_ns = Arc::new(move || spoken.load(Ordering::Acquire));
        lease.require(Voucher { name: "a test".to_owned(), word_ns, term: Duration::from_millis(300) });
        becomes(true);
        becomes(false);
        becomes(true);
        let objector = lease.objector();
        objector.object("test", "an objection");
        assert!(!stands(), "at once");
        speak();
        std::thread::sleep(PERIOD * 2);
        assert!(!stands(), "words do not help against it");
        objector.withdraw("test");
        becomes(true);
        drop(lease);
        assert!(!stands());
    }
}

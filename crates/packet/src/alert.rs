//! What one thread tells another when that has nothing to do and is about to sleep, without a lock.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Whether somebody wants to be told of what others do. Who wants it and who does something each write first and look then, with
/// a fence between: at least one of them sees what the other wrote, so nobody sleeps while there is something for him.
#[derive(Debug)]
pub struct Alert(AtomicBool);

impl Default for Alert {
    fn default() -> Self {
        Alert(AtomicBool::new(false))
    }
}

impl Alert {
    /// Asks to be told. After this, and before he sleeps, whoever asks must look once more.
    #[inline]
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Wants nothing any more; whether it was still wanted, that is, whether nobody has answered.
    #[inline]
    pub fn withdraw(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    /// Whether who asked must be told of what was done before this.
    #[inline]
    pub fn is_asked(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed)
    }

    /// As [`Alert::is_asked`], of which one answer is enough.
    #[inline]
    pub fn answer(&self) -> bool {
        self.is_asked() && self.withdraw()
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    /// In every interleaving of two who do something and one who asks: he sees all of it, or is told. If he sees it he wants to be
    /// told no more, and knows whether somebody has done so already.
    #[test]
    fn nobody_sleeps_while_there_is_something_for_him() {
        loom::model(|| {
            let state = Arc::new((Alert::default(), [AtomicU32::new(0), AtomicU32::new(0)]));
            let doers = [0, 1].map(|doer| {
                let state = state.clone();
                thread::spawn(move || {
                    state.1[doer].store(1, Ordering::Relaxed);
                    state.0.answer()
                })
            });
            state.0.ask();
            let seen = state.1.iter().all(|done| done.load(Ordering::Relaxed) == 1);
            let unanswered = seen && state.0.withdraw();
            let told = doers.map(|doer| doer.join().unwrap());
            assert!(seen || told.contains(&true));
            assert!(!(told[0] && told[1]), "one answer is enough");
            assert!(
                !seen || unanswered != told.contains(&true),
                "who does not sleep knows whether he is told"
            );
        });
    }
}

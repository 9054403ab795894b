//! Signals that end the router: SIGINT, SIGTERM and SIGHUP.
//!
//! Who starts it so that SIGHUP is ignored, as nohup(1) does, wants it to outlive the terminal: then that one does nothing.
//! The first asks for an orderly end. Whoever sends another means it: the process ends at once, and the kernel takes
//! back what it held. So it does when the orderly end takes too long.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, iterator, low_level};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const ALL: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// Signals that come together are one: timeout(1) sends its signal to the process and to its group, and a terminal
/// that closes hangs up twice.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long an orderly end may take.
const ORDERLY: Duration = Duration::from_secs(10);

/// Which signal came.
#[derive(Clone, Debug)]
pub struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Watches for signals from here on; `wake` is called when the first comes.
    pub fn watch(wake: impl FnOnce() + Send + 'static) -> io::Result<Signals> {
        let (latest, insisted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let is_heeded = |&signal: &i32| signal != SIGHUP || !is_ignored(signal);
        let heeded: Vec<i32> = ALL.into_iter().filter(is_heeded).collect();
        for &signal in &heeded {
            // The exit status that a shell gives to a command which a signal ended.
            flag::register_conditional_shutdown(signal, 128 + signal, insisted.clone())?;
            flag::register_usize(signal, latest.clone(), signal.unsigned_abs() as usize)?;
        }
        let mut signals = iterator::Signals::new(heeded)?;
        let watch = move || {
            if signals.forever().next().is_none() {
                return;
            }
            wake();
            std::thread::sleep(TOGETHER);
            insisted.store(true, Ordering::Relaxed);
            std::thread::sleep(ORDERLY);
            log::error!(code = "end-forced"; "it does not end in an orderly way, so it ends at once");
            log::logger().flush();
            low_level::exit(1);
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
        Ok(Signals(latest))
    }

    /// The latest signal, if one came.
    pub fn latest(&self) -> Option<i32> {
        i32::try_from(self.0.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
    }
}

/// Whether this process was started so that it ignores a signal (proc_pid_status(5), `SigIgn`).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

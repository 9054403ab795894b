//! Standard error: the log of a running router, and what a command answers when it fails.
//!
//! All crates log through the facade of the `log` crate, and this is what is behind it. A line of a router's log
//! begins with the time (RFC 3339, UTC) and the program:
//!
//! ```text
//! 2026-03-01T12:00:00.123Z causeway: control socket /run/causeway/router.sock, counters ...
//! 2026-03-01T12:00:09.456Z causeway: [worker-ended] worker 0 ended by itself; stopping
//! ```
//!
//! A message that people or programs look for has a stable code, which the facade takes as a value beside the text:
//! `log::error!(code = "worker-ended"; "worker {worker} ended by itself; stopping")`.
//!
//! Errors of a configuration, and all that is said under the name `click`, are no log but the program's answer: they
//! have no time ([`answer`]).
//!
//! Nobody who logs waits for whoever reads. Texts go into a bounded queue that a thread of its own writes from; what
//! finds the queue full is counted, and the log says how much it was. A standard error that is closed or full loses
//! lines and changes nothing else.

use log::kv::Key;
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The code of the number of texts that were lost.
const LOST_CODE: &str = "log-lost";
/// Texts that wait to be written, at most.
const QUEUE: usize = 1_024;
/// How long the end of the program waits for what is still in the queue.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a line begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A router's log: the time and the program.
    Log,
    /// A command's answer: the program.
    Command,
    /// Click's: nothing.
    Click,
}

static LOGGER: OnceLock<Logger> = OnceLock::new();
static STYLE: OnceLock<Style> = OnceLock::new();
/// Texts that nobody will read: the queue was full, or they could not be written.
static LOST: AtomicU64 = AtomicU64::new(0);

enum Message {
    Text(String),
    /// Answered when all before it is written.
    Flush(SyncSender<()>),
}

struct Logger {
    queue: SyncSender<Message>,
}

/// Writes what is still in the queue when it is dropped.
pub struct Started;

/// Sets the log going, for panics too.
pub fn start() -> Started {
    let (queue, messages) = sync_channel(QUEUE);
    let logger = LOGGER.get_or_init(|| Logger { queue });
    let write = move || write_from(&messages, &LOST, &mut std::io::stderr());
    // Without the thread the queue has no other end, and what is logged is lost as if standard error were closed.
    let _ = std::thread::Builder::new().name("log".to_owned()).spawn(write);
    if log::set_logger(logger).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
    // The usual hook writes to standard error itself, which a worker must never wait for.
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name").to_owned();
        let trace = std::backtrace::Backtrace::capture();
        let trace = match trace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
            _ => String::new(),
        };
        log::error!(code = "panic"; "thread {name}: {panic}{trace}");
    }));
    Started
}

impl Drop for Started {
    fn drop(&mut self) {
        log::logger().flush();
    }
}

/// Says what lines begin with from here on; the first to say so decides.
pub fn set_style(style: Style) {
    let _ = STYLE.set(style);
}

/// Writes a complete text as it is: what the program answers. It is there before whatever is printed next.
pub fn answer(text: &str) {
    if let Some(logger) = LOGGER.get().filter(|_| !text.is_empty()) {
        logger.put(text.to_owned());
        logger.flush();
    }
}

impl Logger {
    fn put(&self, text: String) {
        if self.queue.try_send(Message::Text(text)).is_err() {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let style = STYLE.get().copied().unwrap_or(Style::Command);
        self.put(text(record, style, SystemTime::now()));
    }

    /// Waits until all is written, but not for ever: standard error may be a terminal that was stopped.
    fn flush(&self) {
        let (done, written) = sync_channel(1);
        match self.queue.try_send(Message::Flush(done)) {
            Ok(()) => drop(written.recv_timeout(LAST_WORDS)),
            // It is as full as it can be: nobody reads.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

/// The lines of a record, each with its beginning.
fn text(record: &Record<'_>, style: Style, time: SystemTime) -> String {
    let head = match style {
        Style::Log => format!("{} causeway: ", rfc3339(time)),
        Style::Command => "causeway: ".to_owned(),
        Style::Click => String::new(),
    };
    let code = record.key_values().get(Key::from_str("code")).filter(|_| style != Style::Click);
    let code = code.map_or(String::new(), |code| format!("[{code}] "));
    let warning = if record.level() == Level::Warn { "warning: " } else { "" };
    let mut text = String::new();
    for (i, line) in record.args().to_string().lines().enumerate() {
        let (code, warning) = if i == 0 { (code.as_str(), warning) } else { ("", "") };
        text += &format!("{head}{code}{warning}{line}\n");
    }
    text
}

/// Writes what comes from `queue`, and how much was lost once there is room to say so.
fn write_from(queue: &Receiver<Message>, lost: &AtomicU64, out: &mut impl Write) {
    for message in queue {
        match message {
            Message::Text(text) => {
                if out.write_all(text.as_bytes()).is_err() {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Whoever asked may have given up waiting.
            Message::Flush(done) => drop(done.try_send(())),
        }
        let n = lost.swap(0, Ordering::Relaxed);
        if n > 0 {
            let line = format!("{} causeway: [{LOST_CODE}] {n} messages could not be written\n", now());
            if out.write_all(line.as_bytes()).is_err() {
                lost.fetch_add(n, Ordering::Relaxed);
            }
        }
    }
}

fn now() -> String {
    rfc3339(SystemTime::now())
}

/// A time as RFC 3339, section 5.6 writes it, in UTC with milliseconds.
fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// Year, month and day of the day that many days after 1970-01-01 in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    // 400 years have 146 097 days; what is left takes few steps.
    let (mut year, mut rest) = (1970 + days / 146_097 * 400, days % 146_097);
    while rest >= 365 + u64::from(leap(year)) {
        rest -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    (year, month, rest + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Condvar, Mutex};

    fn at(seconds: u64, ms: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(ms)
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        // As date(1) of GNU coreutils prints them.
        for (seconds, ms, text) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, 1, "2024-02-29T23:59:59.001Z"),
            (1_767_225_599, 50, "2025-12-31T23:59:59.050Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
            (13_569_465_600, 0, "2400-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(at(seconds, ms)), text);
        }
    }

    #[test]
    fn each_line_has_its_beginning_and_the_first_its_code() {
        let of = |level, code: Option<&'static str>, style| {
            let values: Vec<(&str, &str)> = code.map(|c| ("code", c)).into_iter().collect();
            let mut record = Record::builder();
            record.level(level).key_values(&values);
            text(&record.args(format_args!("one\n  two")).build(), style, at(0, 7))
        };
        let time = "1970-01-01T00:00:00.007Z causeway: ";
        let expected = format!("{time}[x-y] one\n{time}  two\n");
        assert_eq!(of(Level::Error, Some("x-y"), Style::Log), expected);
        assert_eq!(of(Level::Warn, None, Style::Command), "causeway: warning: one\ncauseway:   two\n");
        assert_eq!(of(Level::Warn, Some("x-y"), Style::Click), "warning: one\n  two\n");
    }

    /// Takes what is written once it is opened; fails if it is closed.
    #[derive(Clone, Default)]
    struct Gate(Arc<(Mutex<(bool, String)>, Condvar)>);

    impl Gate {
        fn open(&self) {
            self.0.0.lock().unwrap().0 = true;
            self.0.1.notify_all();
        }

        fn text(&self) -> String {
            self.0.0.lock().unwrap().1.clone()
        }
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let state = self.0.1.wait_while(self.0.0.lock().unwrap(), |(open, _)| !*open);
            state.unwrap().1 += std::str::from_utf8(bytes).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_said_and_nobody_waits() {
        static LOST_HERE: AtomicU64 = AtomicU64::new(0);
        let (queue, messages) = sync_channel(2);
        let gate = Gate::default();
        let mut out = gate.clone();
        let writer = std::thread::spawn(move || write_from(&messages, &LOST_HERE, &mut out));
        let mut lost = 0;
        for n in 0..100 {
            // Returns although nobody can write.
            if queue.try_send(Message::Text(format!("{n}\n"))).is_err() {
                lost += 1;
                LOST_HERE.fetch_add(1, Ordering::Relaxed);
            }
        }
        assert!(lost >= 97, "two wait and one is being written");
        gate.open();
        drop(queue);
        writer.join().unwrap();
        let text = gate.text();
        assert_eq!(text.lines().filter(|l| l.parse::<u32>().is_ok()).count(), 100 - lost);
        assert!(
            text.contains(&format!("causeway: [log-lost] {lost} messages could not be written\n")),
            "{text}"
        );
    }

    #[test]
    fn an_error_of_writing_loses_the_line_and_nothing_else() {
        static LOST_HERE: AtomicU64 = AtomicU64::new(0);
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (queue, messages) = sync_channel(8);
        for _ in 0..3 {
            queue.send(Message::Text("x\n".to_owned())).unwrap();
        }
        let (done, written) = sync_channel(1);
        queue.send(Message::Flush(done)).unwrap();
        drop(queue);
        write_from(&messages, &LOST_HERE, &mut Broken);
        assert!(written.recv().is_ok());
        assert_eq!(LOST_HERE.load(Ordering::Relaxed), 3);
    }
}

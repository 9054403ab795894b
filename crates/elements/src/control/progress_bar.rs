//! ProgressBar.

use super::script::{general, real};
use crate::printing::to_stderr;
use causeway_engine::Named;
use causeway_engine::prelude::*;
use causeway_engine::value::Raw;
use causeway_lang::args::split_words;
use causeway_lang::values::{MILLISECOND_NS, SECOND_NS, string, time_ns};
use std::io::IsTerminal;

pub(crate) static SPEC: Spec = Spec {
    name: "ProgressBar",
    category: "control",
    summary: "shows on a terminal how far something has come",
    ports: "0/0",
    doc: "Reads every UPDATE how far it is (POSHANDLER) and once how far it is to the end (SIZEHANDLER), and shows that on \
          standard error as a bar, with the time that is left. Both may be several handlers in a list, whose values are \
          added. Where standard error is no terminal it shows nothing, but its handlers work.",
    args: &[
        required("POSHANDLER", "read handlers", "how far it is"),
        optional("SIZEHANDLER", "read handlers", "how far it is to the end; default not known"),
        keyword("UPDATE", "time", "how often it is shown; default 250 ms"),
        keyword("BANNER", "string", "what stands before the bar; default nothing"),
        keyword("ACTIVE", "boolean", "whether it shows anything; default true"),
        keyword("DELAY", "time", "when it is shown first; default at once"),
        keyword(
            "CHECK_STDOUT",
            "boolean",
            "whether it shows nothing if standard output is a terminal; default false",
        ),
        keyword("FIXED_SIZE", "number", "how far it is to the end, without a SIZEHANDLER"),
    ],
    handlers: &[
        writes("mark_stopped", "it is over, perhaps before its end"),
        writes("mark_done", "it is over"),
        reads_writes("active", "whether it shows anything"),
        reads_writes("banner", "what stands before the bar"),
        reads_writes("poshandler", "the handlers that say how far it is"),
        reads_writes("sizehandler", "the handlers that say how far it is to the end"),
        reads("pos", "how far it was when it was last shown"),
        reads_writes("size", "how far it is to the end"),
        writes("reset", "begins anew"),
    ],
    example: "c :: Counter; InfiniteSource(LIMIT 10, STOP true) -> c -> Discard; ProgressBar(c.count, FIXED_SIZE 10);",
    see: &["Script"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

/// The only timer.
const TIMER: u32 = 0;
/// How long it may stand still before it is said to be stalled.
const STALL_NS: u64 = 5 * SECOND_NS;
/// What there is to the right of the bar.
const FIGURES: usize = 25;
const MOST_WIDE: usize = 240;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    First,
    Middle,
    Done,
    /// Nobody would see it.
    Dead,
}

#[derive(Default)]
struct ProgressBar {
    position: Vec<(String, Named)>,
    size_handlers: Vec<(String, Named)>,
    names: [Vec<String>; 2],
    interval_ns: u64,
    delay_ns: u64,
    banner: String,
    active: bool,
    state: State,
    size: f64,
    has_size: bool,
    last: f64,
    start_ns: u64,
    last_ns: u64,
    stalled_ns: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let words = |raw: Raw| split_words(&raw.0);
    let names = [words(conf.required("POSHANDLER")), words(conf.optional("SIZEHANDLER", Raw(String::new())))];
    let mut time = |name: &str, default_ns: u64| match conf.keyword_given::<Raw>(name) {
        Some(raw) => time_ns(&raw.0, SECOND_NS).unwrap_or_else(|e| {
            conf.error(format!("{name}: {e}"));
            default_ns
        }),
        None => default_ns,
    };
    let (interval_ns, delay_ns) = (time("UPDATE", 250 * MILLISECOND_NS), time("DELAY", 0));
    let banner = conf.keyword("BANNER", Raw(String::new())).0;
    let active = conf.keyword("ACTIVE", true);
    let check = conf.keyword("CHECK_STDOUT", false);
    let fixed = conf.keyword_given::<Raw>("FIXED_SIZE");
    let size = fixed.as_ref().and_then(|raw| real(&raw.0));
    if fixed.is_some() && size.is_none() {
        conf.error("FIXED_SIZE: invalid number");
    }
    conf.finish()?;
    let seen = std::io::stderr().is_terminal() && !(check && std::io::stdout().is_terminal());
    Ok(Box::new(ProgressBar {
        names,
        interval_ns: interval_ns.max(MILLISECOND_NS),
        delay_ns,
        banner: string(&banner).unwrap_or_default(),
        active,
        state: if seen { State::First } else { State::Dead },
        size: size.unwrap_or(-1.0),
        has_size: size.is_some(),
        ..ProgressBar::default()
    }))
}

impl ProgressBar {
    /// The handlers of these names.
    fn found(&mut self, names: &[String], cx: &mut Cx<'_>) -> Result<Vec<(String, Named)>, Error> {
        let mut found = Vec::new();
        for name in names {
            let (named, access) = cx.find_handler(self, name)?;
            let full = cx.full_name(&named);
            if !access.is_some_and(|access| access.reads()) {
                return Err(Error::new(format!("no '{full}' read handler")));
            }
            found.push((full, named));
        }
        Ok(found)
    }

    /// The sum of what handlers say; `None` if one of them says no number.
    fn value(&mut self, of: &[(String, Named)], cx: &mut Cx<'_>) -> Option<f64> {
        let mut sum = (!of.is_empty()).then_some(0.0);
        for (_, named) in of {
            let value = real(cx.read_outside(self, named, "").value.trim());
            sum = sum.zip(value).map(|(sum, value)| sum + value);
        }
        sum
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        if !self.has_size {
            let handlers = self.size_handlers.clone();
            let size = self.value(&handlers, cx);
            (self.has_size, self.size) = (size.is_some(), size.unwrap_or(self.size));
        }
        let now_ns = cx.now_ns();
        (self.last, self.last_ns, self.start_ns, self.stalled_ns) = (0.0, now_ns, now_ns, 0);
        if self.state == State::First {
            self.state = State::Middle;
        }
    }

    /// Shows how far it is.
    fn show(&mut self, cx: &mut Cx<'_>) {
        if !self.active || self.state == State::Dead {
            return;
        }
        if self.state == State::First || self.start_ns == 0 {
            self.begin(cx);
        }
        let now_ns = cx.now_ns();
        if now_ns < self.start_ns + self.delay_ns {
            return cx.set_timer(TIMER, self.start_ns + self.delay_ns);
        }
        let handlers = self.position.clone();
        let position = self.value(&handlers, cx);
        let wide = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col.into());
        to_stderr(&self.line(position, now_ns, if wide == 0 { 80 } else { wide }));
        if self.state == State::Done {
            self.active = false;
        } else {
            cx.set_timer(TIMER, now_ns + self.interval_ns);
        }
    }

    /// The line for a terminal that is so many characters wide.
    fn line(&mut self, position: Option<f64>, now_ns: u64, wide: usize) -> String {
        let done = self.state == State::Done;
        let percent = match position {
            Some(position) if self.has_size && self.size > 0.0 => {
                (100.0 * position / self.size).clamp(0.0, 100.0).trunc()
            }
            Some(_) if self.has_size => 100.0,
            // To and fro, two hundred steps of 100 000 each.
            Some(position) => 100.0 - ((position / 100_000.0).trunc() % 200.0 - 100.0).abs(),
            None => -1.0,
        };
        let mut text = String::from("\r");
        if !self.banner.is_empty() {
            text += &format!("{} ", self.banner);
        }
        match (self.has_size, position) {
            (true, Some(_)) => text += &format!("{percent:3.0}% "),
            (true, None) => text += "  -% ",
            (false, _) => {}
        }
        let bar = wide.saturating_sub(text.len() + FIGURES).min(MOST_WIDE);
        let at = |length: usize| (length as f64 * percent.max(0.0) / 100.0) as usize;
        if bar > 0 {
            let drawn = match self.has_size {
                _ if percent < 0.0 => "-".repeat(bar),
                false if done => "-".repeat(bar),
                true => "*".repeat(at(bar)),
                false => " ".repeat(at(bar.saturating_sub(3))) + "***",
            };
            text += &format!("|{drawn:bar$.bar$}|");
        }
        match position {
            Some(position) => text += &abbreviated(position),
            None => text += " -----   ",
        }
        text += &self.time(position, now_ns);
        if done { text + "\n" } else { text }
    }

    /// How long it takes yet, or has taken.
    fn time(&mut self, position: Option<f64>, now_ns: u64) -> String {
        let mut wait_ns = now_ns.saturating_sub(self.last_ns);
        if let Some(position) = position.filter(|position| *position > self.last) {
            (self.last, self.last_ns) = (position, now_ns);
            self.stalled_ns += if wait_ns >= STALL_NS { wait_ns } else { 0 };
            wait_ns = 0;
        }
        let elapsed_s = now_ns.saturating_sub(self.start_ns + self.stalled_ns) as f64 / SECOND_NS as f64;
        let known = position.filter(|position| self.has_size && elapsed_s > 0.0 && *position <= self.size);
        if self.state != State::Done && known.is_none() {
            return "   --:-- ETA".to_owned();
        }
        if wait_ns >= STALL_NS {
            return " - stalled -".to_owned();
        }
        let left = known.filter(|position| self.state != State::Done && *position > 1e-6);
        let seconds =
            left.map_or(elapsed_s, |position| self.size / (position / elapsed_s) - elapsed_s) as u64;
        let hours = if seconds >= 3_600 { format!("{:2}:", seconds / 3_600) } else { "   ".to_owned() };
        let end = if left.is_some() { " ETA" } else { "    " };
        format!("{hours}{:02}:{:02}{end}", seconds % 3_600 / 60, seconds % 60)
    }

    fn complete(&mut self, full: bool, cx: &mut Cx<'_>) {
        if !matches!(self.state, State::First | State::Middle) || !self.active {
            return;
        }
        if self.state == State::First {
            self.begin(cx);
        }
        if full {
            let handlers = self.position.clone();
            self.size = self.value(&handlers, cx).unwrap_or(self.size);
            self.has_size = true;
        }
        self.state = State::Done;
        cx.clear_timer(TIMER);
        self.show(cx);
    }
}

/// A number with at most five digits.
fn abbreviated(number: f64) -> String {
    let (mut number, mut prefixes) = (number, " KMGTP".chars());
    let mut prefix = prefixes.next().unwrap_or(' ');
    while number >= 100_000.0
        && let Some(next) = prefixes.next()
    {
        (number, prefix) = (number / 1024.0, next);
    }
    format!(" {:5}{prefix}{} ", number as u64, if prefix == ' ' { ' ' } else { 'B' })
}

impl Element for ProgressBar {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let [position, size] = self.names.clone();
        self.size_handlers = self.found(&size, cx)?;
        self.position = self.found(&position, cx)?;
        if self.active && self.state != State::Dead {
            let now_ns = cx.now_ns();
            cx.set_timer(TIMER, now_ns);
        }
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        self.show(cx);
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let names =
            |of: &[(String, Named)]| of.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ");
        Ok(match handler {
            "active" => self.active.to_string(),
            "banner" => self.banner.clone(),
            "poshandler" => names(&self.position),
            "sizehandler" => names(&self.size_handlers),
            "pos" => general(self.last),
            _ => general(self.size),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let value = value.trim();
        match handler {
            "mark_stopped" | "mark_done" => self.complete(handler == "mark_done", cx),
            "poshandler" => self.position = self.found(&split_words(value), cx)?,
            "sizehandler" => {
                self.size_handlers = self.found(&split_words(value), cx)?;
                self.has_size = false;
            }
            "banner" => self.banner = value.to_owned(),
            "size" => self.size = real(value).ok_or("size: invalid number")?,
            "active" => {
                self.active = cx.value("active", value).map_err(|_| "type mismatch")?;
                let now_ns = cx.now_ns();
                if self.active && self.state != State::Dead {
                    cx.set_timer(TIMER, now_ns);
                }
            }
            _ => {
                (self.has_size, self.active) = (false, true);
                if self.state != State::Dead {
                    self.state = State::First;
                    let now_ns = cx.now_ns();
                    cx.set_timer(TIMER, now_ns);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    fn bar(has_size: bool, size: f64) -> ProgressBar {
        ProgressBar { has_size, size, active: true, state: State::Middle, ..ProgressBar::default() }
    }

    #[test]
    fn lines_have_their_form() {
        let mut known = bar(true, 100.0);
        assert_eq!(
            known.line(Some(74.0), SECOND_NS, 50),
            format!("\r 74% |{:19}|    74      00:00 ETA", "*".repeat(14))
        );
        assert_eq!(known.line(None, SECOND_NS, 40), "\r  -% |---------| -----      --:-- ETA");
        let mut unknown = bar(false, -1.0);
        assert_eq!(
            unknown.line(Some(5_000_000.0), SECOND_NS, 41),
            "\r|      ***      |  4882KB    --:-- ETA"
        );
        assert_eq!(known.line(Some(75.0), 9 * SECOND_NS, 20), "\r 75%     75      00:00 ETA");
        assert_eq!(known.line(Some(75.0), 15 * SECOND_NS, 20), "\r 75%     75    - stalled -");
        known.state = State::Done;
        assert_eq!(known.line(Some(100.0), 16 * SECOND_NS, 20), "\r100%    100      00:01    \n");
    }

    #[test]
    fn its_handlers_say_what_it_was_told() {
        let mut h = Harness::new(&SPEC, "held, BANNER \"x y\", FIXED_SIZE 100", 0, 0).unwrap();
        let of = |h: &mut Harness, name: &str| h.read(name).unwrap();
        assert_eq!(of(&mut h, "poshandler"), "element.held");
        assert_eq!([of(&mut h, "size"), of(&mut h, "pos"), of(&mut h, "banner")], ["100", "0", "x y"]);
        h.write("size", "5.5").unwrap();
        h.write("active", "false").unwrap();
        assert_eq!(
            [of(&mut h, "size"), of(&mut h, "active"), of(&mut h, "sizehandler")],
            ["5.5", "false", ""]
        );
        assert_eq!(h.write("poshandler", "x.y"), Err("no element named 'x'".to_owned()));
        assert_eq!(Harness::new(&SPEC, "nothing.here", 0, 0).err().unwrap(), ["no element named 'nothing'"]);
        assert_eq!(Harness::new(&SPEC, "", 0, 0).err().unwrap(), ["POSHANDLER: required argument missing"]);
    }
}

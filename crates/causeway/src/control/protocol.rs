//! Commands and replies, free of sockets.

use super::watch::{Watch, Watched};
use causeway_engine::handler::HandlerError;

/// What a client asks of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The value of a handler.
    Read(String, String),
    /// To write a handler.
    Write(String, String),
    /// Whether a handler can be read.
    CheckRead(String),
    /// Whether a handler can be written.
    CheckWrite(String),
}

impl Question {
    /// The handler that it is about.
    pub fn handler_mut(&mut self) -> &mut String {
        match self {
            Question::Read(handler, _) | Question::Write(handler, _) => handler,
            Question::CheckRead(handler) | Question::CheckWrite(handler) => handler,
        }
    }
}

/// Answers questions: the session that owns the router.
pub trait Ask {
    /// The value read, or an empty text.
    fn ask(&self, question: Question) -> Result<String, HandlerError>;

    /// A client has come, or gone.
    fn client(&self, there: bool) {
        let _ = there;
    }

    /// What elements have counted that the next configuration does not have is kept until a later one has them again.
    fn keep_counts(&self) {}

    /// Puts the router's own graph, of other ports, in the place of the one that runs. No client may ask for it.
    fn own_graph(&self, text: String) -> Result<(), HandlerError> {
        let _ = text;
        Err(HandlerError::Gone)
    }

    /// Begins to watch packets.
    fn watch(&self, watch: Watch) -> Result<Watched, HandlerError> {
        let _ = watch;
        Err(HandlerError::Gone)
    }
}

/// What the server sends back, and what it wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// These bytes.
    Send(Vec<u8>),
    /// So many bytes of data first, then [`Pending::data`].
    NeedBytes(usize, Pending),
    /// Lines up to this one first, then [`Pending::data`].
    NeedUntil(String, Pending),
    /// These bytes, and the end of the connection.
    Close(Vec<u8>),
}

/// A command that waits for its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    handler: String,
    verb: Verb,
}

/// What a command with data does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Read,
    Write,
    LowLevel,
}

/// First line that a client sees.
pub const GREETING: &str = "Click::ControlSocket/1.3\r\n";
/// Data in one command at most.
pub const MAX_DATA: usize = 64 << 20;

impl Pending {
    /// Carries out the command with its data.
    pub fn data(self, data: &str, router: &dyn Ask) -> Vec<u8> {
        match self.verb {
            Verb::Read => read(router, self.handler, data.to_owned()),
            Verb::Write => write(router, self.handler, data.to_owned()),
            Verb::LowLevel => low_level(router, &self.handler),
        }
    }
}

/// Carries out one line.
pub fn line(line: &str, router: &dyn Ask) -> Option<Reply> {
    let (command, rest) = split(line.trim());
    if command.is_empty() {
        return None;
    }
    let (handler, argument) = split(rest);
    let (handler, argument) = (handler.to_owned(), argument.to_owned());
    let command = command.to_ascii_uppercase();
    let needs_handler = !matches!(command.as_str(), "HELP" | "QUIT" | "CLOSE");
    if needs_handler && handler.is_empty() {
        let known = COMMANDS.iter().any(|(name, _)| name.split(' ').next() == Some(&command));
        return Some(Reply::Send(match known || matches!(command.as_str(), "GET" | "SET" | "SETDATA") {
            true => status(500, "Wrong number of arguments"),
            false => status(501, &format!("Command '{command}' unimplemented")),
        }));
    }
    Some(match command.as_str() {
        "READ" | "GET" => Reply::Send(read(router, handler, argument)),
        "WRITE" | "SET" => Reply::Send(write(router, handler, argument)),
        "READDATA" => with_bytes(&argument, Pending { handler, verb: Verb::Read }),
        "WRITEDATA" | "SETDATA" => with_bytes(&argument, Pending { handler, verb: Verb::Write }),
        "READUNTIL" => Reply::NeedUntil(argument, Pending { handler, verb: Verb::Read }),
        "WRITEUNTIL" => Reply::NeedUntil(argument, Pending { handler, verb: Verb::Write }),
        "CHECKREAD" => Reply::Send(check(router, Question::CheckRead(handler))),
        "CHECKWRITE" => Reply::Send(check(router, Question::CheckWrite(handler))),
        "LLRPC" if argument.is_empty() => Reply::Send(low_level(router, &handler)),
        "LLRPC" => with_bytes(&argument, Pending { handler, verb: Verb::LowLevel }),
        "HELP" => Reply::Send(help()),
        "QUIT" | "CLOSE" => Reply::Close(status(200, "Goodbye!")),
        _ => Reply::Send(status(501, &format!("Command '{command}' unimplemented"))),
    })
}

/// The command with as many bytes of data as `count` says.
fn with_bytes(count: &str, pending: Pending) -> Reply {
    match count.parse::<usize>() {
        Ok(n) if n <= MAX_DATA => Reply::NeedBytes(n, pending),
        Ok(_) => Reply::Send(status(521, "Data too long")),
        Err(_) if count.is_empty() => Reply::Send(status(500, "Wrong number of arguments")),
        Err(_) => Reply::Send(status(500, "Syntax error")),
    }
}

/// Answers a low-level call, `element#number`: no element has one.
fn low_level(router: &dyn Ask, name: &str) -> Vec<u8> {
    let parts = name.split_once('#').filter(|(_, n)| u32::from_str_radix(n, 16).is_ok());
    let Some((element, _)) = parts else {
        return status(500, &format!("Syntax error in LLRPC name '{name}'"));
    };
    match router.ask(Question::CheckRead(format!("{element}.name"))) {
        Ok(_) => status(501, &format!("Cannot call LLRPC '{name}' remotely")),
        Err(e) => refuse(&e),
    }
}

fn split(text: &str) -> (&str, &str) {
    match text.split_once(|c: char| c.is_ascii_whitespace()) {
        Some((first, rest)) => (first, rest.trim_start()),
        None => (text, ""),
    }
}

const COMMANDS: &[(&str, &str)] = &[
    ("READ handler [arguments]", "read a handler"),
    ("READDATA handler n", "read a handler with n bytes of arguments"),
    ("READUNTIL handler line", "read a handler with arguments up to a line"),
    ("WRITE handler [value]", "write a handler"),
    ("WRITEDATA handler n", "write n bytes to a handler"),
    ("WRITEUNTIL handler line", "write data up to a line to a handler"),
    ("CHECKREAD handler", "ask whether a handler can be read"),
    ("CHECKWRITE handler", "ask whether a handler can be written"),
    ("WATCH request", "watch packets as the JSON object says; nothing else follows"),
    ("HELP", "show this"),
    ("QUIT", "end the connection"),
];

fn help() -> Vec<u8> {
    let mut lines = vec!["Commands:".to_owned()];
    lines.extend(COMMANDS.iter().map(|(form, what)| format!("{form}: {what}")));
    status(200, &lines.join("\n"))
}

/// A reply of one line a line of `text`.
fn status(code: u16, text: &str) -> Vec<u8> {
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.len().saturating_sub(1);
    let mut out = String::new();
    for (i, line) in lines.iter().enumerate() {
        out += &format!("{code}{}{line}\r\n", if i == last { ' ' } else { '-' });
    }
    out.into_bytes()
}

fn read(router: &dyn Ask, handler: String, argument: String) -> Vec<u8> {
    match router.ask(Question::Read(handler.clone(), argument)) {
        Ok(value) => {
            let mut out = status(200, &format!("Read handler '{handler}' OK"));
            out.extend(format!("DATA {}\r\n", value.len()).into_bytes());
            out.extend(value.into_bytes());
            out
        }
        Err(e @ (HandlerError::Failed(_) | HandlerError::NoParameters(_))) => {
            status(590, &format!("Read handler '{handler}' error:\n{e}"))
        }
        Err(e) => refuse(&e),
    }
}

fn write(router: &dyn Ask, handler: String, value: String) -> Vec<u8> {
    match router.ask(Question::Write(handler.clone(), value)) {
        Ok(_) => status(200, &format!("Write handler '{handler}' OK")),
        Err(HandlerError::Failed(why)) => status(520, &format!("Write handler '{handler}' error:\n{why}")),
        Err(e) => refuse(&e),
    }
}

fn check(router: &dyn Ask, question: Question) -> Vec<u8> {
    let (verb, handler) = match &question {
        Question::CheckRead(h) => ("Read", h.clone()),
        Question::CheckWrite(h) | Question::Read(h, _) | Question::Write(h, _) => ("Write", h.clone()),
    };
    match router.ask(question) {
        Ok(_) => status(200, &format!("{verb} handler '{handler}' OK")),
        Err(HandlerError::ReadOnly(_)) => status(511, &format!("Handler '{handler}' not writable")),
        Err(HandlerError::WriteOnly(_)) => status(511, &format!("Handler '{handler}' not readable")),
        Err(e) => refuse(&e),
    }
}

fn refuse(error: &HandlerError) -> Vec<u8> {
    let code = match error {
        HandlerError::NoElement(_) => 510,
        HandlerError::NoHandler(_) | HandlerError::NoProxied(_) => 511,
        HandlerError::ReadOnly(_) | HandlerError::WriteOnly(_) | HandlerError::Denied(_) => 530,
        HandlerError::NoParameters(_) => 590,
        HandlerError::Failed(_) => 520,
        HandlerError::NoAnswer(_) | HandlerError::Gone => 540,
    };
    status(code, &error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    impl Ask for One {
        fn ask(&self, question: Question) -> Result<String, HandlerError> {
            match question {
                Question::Read(h, a) if h == "c.count" => Ok(format!("7{a}")),
                Question::Write(h, _) if h == "s.switch" => Err(HandlerError::Failed("bad\nvalue".into())),
                Question::Read(h, _) if h == "c.bad" => Err(HandlerError::NoParameters(h)),
                Question::Read(h, _) | Question::Write(h, _) => Err(HandlerError::NoHandler(h)),
                Question::CheckRead(h) if h == "x.name" => Err(HandlerError::NoElement("x".to_owned())),
                Question::CheckRead(_) => Ok(String::new()),
                Question::CheckWrite(h) => Err(HandlerError::ReadOnly(h)),
            }
        }
    }

    fn say(text: &str) -> String {
        match line(text, &One) {
            Some(Reply::Send(b) | Reply::Close(b)) => String::from_utf8(b).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn replies_have_the_protocols_form() {
        assert_eq!(say("read c.count"), "200 Read handler 'c.count' OK\r\nDATA 1\r\n7");
        assert_eq!(say("GET c.count  x"), "200 Read handler 'c.count' OK\r\nDATA 2\r\n7x");
        assert_eq!(
            say("WRITE s.switch 9"),
            "520-Write handler 's.switch' error:\r\n520-bad\r\n520 value\r\n"
        );
        assert_eq!(say("READ x.y"), "511 No handler named 'x.y'\r\n");
        assert_eq!(say("CHECKWRITE c.count"), "511 Handler 'c.count' not writable\r\n");
        assert_eq!(
            say("READ c.bad"),
            "590-Read handler 'c.bad' error:\r\n590 read handler 'c.bad' does not take parameters\r\n"
        );
        assert_eq!(say("FOO bar"), "501 Command 'FOO' unimplemented\r\n");
        assert_eq!(say("READ"), "500 Wrong number of arguments\r\n");
        assert_eq!(say("WRITEDATA a.b 99999999999"), "521 Data too long\r\n");
        assert!(line("  ", &One).is_none());
        assert!(matches!(line("QUIT", &One), Some(Reply::Close(_))));
    }

    #[test]
    fn low_level_calls_take_their_data_and_are_refused() {
        assert_eq!(say("LLRPC c#0"), "501 Cannot call LLRPC 'c#0' remotely\r\n");
        assert_eq!(say("LLRPC x#1f"), "510 No element named 'x'\r\n");
        assert_eq!(say("LLRPC c"), "500 Syntax error in LLRPC name 'c'\r\n");
        let Some(Reply::NeedBytes(3, pending)) = line("LLRPC c#0 3", &One) else { panic!() };
        assert_eq!(pending.data("abc", &One), b"501 Cannot call LLRPC 'c#0' remotely\r\n");
        assert_eq!(say("READDATA c.count"), "500 Wrong number of arguments\r\n");
    }

    #[test]
    fn commands_with_data_ask_for_it() {
        let Some(Reply::NeedBytes(2, pending)) = line("READDATA c.count 2", &One) else { panic!() };
        assert_eq!(pending.data("zz", &One), b"200 Read handler 'c.count' OK\r\nDATA 3\r\n7zz");
        assert!(
            matches!(line("WRITEUNTIL c.count EOF", &One), Some(Reply::NeedUntil(end, _)) if end == "EOF")
        );
    }
}

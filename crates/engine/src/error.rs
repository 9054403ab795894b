//! Why an element refuses, and that a worker does not answer.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Why an element refuses: a text that is no value of the type, a configuration, what was written to a handler, its turn
/// to begin.
///
/// Shown, it is what a person is told: what it is about, what is wrong and what that comes from, on one line; on several
/// if several things are wrong. What is put in front ([`Error::of`]), what lies below ([`Error::cause`]) and the place in a
/// file ([`Error::at`]) stay apart from the words, for those who pass the error on. A word long, so that a `Result` of a
/// handler costs no more than its value.
#[derive(Clone)]
pub struct Error(Box<Refusal>);

#[derive(Clone)]
struct Refusal {
    /// What is wrong, in words, with what it is about in front; empty if `cause` says all.
    words: String,
    cause: Option<Arc<dyn StdError + Send + Sync>>,
    is_whole: bool,
    place: Option<FilePlace>,
}

/// The place in a file that an error is about, for [`crate::ElementError`].
#[derive(Clone)]
pub(crate) struct FilePlace {
    pub file: String,
    /// What the class is called in this error.
    pub class: String,
}

impl Error {
    /// An error that says in words what is wrong.
    pub fn new(what: impl Into<String>) -> Error {
        Error(Box::new(Refusal { words: what.into(), cause: None, is_whole: false, place: None }))
    }

    /// An error that comes from another, which says what is wrong.
    pub fn caused_by(cause: impl StdError + Send + Sync + 'static) -> Error {
        let mut error = Error::new("");
        error.0.cause = Some(Arc::new(cause));
        error
    }

    /// One for several things that are wrong, a line each.
    pub fn several(errors: impl IntoIterator<Item = impl fmt::Display>) -> Error {
        let lines: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        Error::new(lines.join("\n"))
    }

    /// The error as one of `subject`, the name of an argument, a handler or a file, which stands in front of the words.
    #[must_use]
    pub fn of(mut self, subject: impl fmt::Display) -> Error {
        self.0.words = match self.0.words.is_empty() {
            true => subject.to_string(),
            false => format!("{subject}: {}", self.0.words),
        };
        self
    }

    /// The error as one that says itself what it is about: it is told without the argument's name, and, as an objection to
    /// what the arguments say, only if all of them could be read.
    #[must_use]
    pub fn whole(mut self) -> Error {
        self.0.is_whole = true;
        self
    }

    /// Whether it says itself what it is about.
    pub fn is_whole(&self) -> bool {
        self.0.is_whole
    }

    /// The error of [`crate::Element::initialize`] as one about this place in a file; Click calls the class by `class`
    /// then.
    #[must_use]
    pub fn at(mut self, file: impl Into<String>, class: impl Into<String>) -> Error {
        self.0.place = Some(FilePlace { file: file.into(), class: class.into() });
        self
    }

    /// The place in a file that it is about.
    pub(crate) fn take_place(&mut self) -> Option<FilePlace> {
        self.0.place.take()
    }

    /// The error that it comes from, which knows nothing of what is in front.
    pub fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_ref().map(|cause| &**cause as _)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { words, cause, .. } = &*self.0;
        match cause {
            None => f.write_str(words),
            Some(cause) if words.is_empty() => cause.fmt(f),
            Some(cause) => write!(f, "{words}: {cause}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Error").field(&self.to_string()).finish()
    }
}

/// The line has the cause's words already: the chain goes on behind it.
impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_ref()?.source()
    }
}

/// Two are the same if a person is told the same.
impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Error {}

impl From<&str> for Error {
    fn from(what: &str) -> Error {
        Error::new(what)
    }
}

impl From<String> for Error {
    fn from(what: String) -> Error {
        Error::new(what)
    }
}

impl From<causeway_lang::values::ValueError> for Error {
    fn from(error: causeway_lang::values::ValueError) -> Error {
        Error::caused_by(error)
    }
}

/// The worker with this number does not answer: it is stuck, or it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAnswer(pub usize);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} does not answer", self.0)
    }
}

impl std::error::Error for NoAnswer {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn what_it_is_about_stands_in_front_and_what_it_comes_from_behind() {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "it is not there");
        let told = [
            Error::new("too long").of("LENGTH"),
            Error::new("too long").of("LENGTH").of("input 3"),
            Error::caused_by(missing()),
            Error::caused_by(missing()).of("a file"),
            Error::several([Error::new("one"), Error::new("two")]),
        ]
        .map(|error| error.to_string());
        let expected = [
            "LENGTH: too long",
            "input 3: LENGTH: too long",
            "it is not there",
            "a file: it is not there",
            "one\ntwo",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_it_comes_from_can_be_asked_for() {
        let error = Error::caused_by(io::Error::from(io::ErrorKind::NotFound)).of("a file");
        let cause = error.cause().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::NotFound));
        assert!(Error::new("x").cause().is_none());
    }
}

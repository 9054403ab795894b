//! Why routes, rules and changes to them are refused.

use causeway_fib::FibError;
use std::error::Error;
use std::fmt;

/// Why a change was refused, or a question not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteError {
    /// Not a route as routes are written.
    Syntax,
    /// The route's output leads nowhere.
    NotConnected { route: String, output: u16 },
    /// A value in the text, in the words of its type.
    Value(causeway_engine::Error),
    /// Not an address by itself.
    Address(String),
    /// The prefix has this route already.
    Conflict { there: String },
    /// The prefix has no route.
    NotFound { route: String },
    /// More next hops than a table tells apart.
    TooManyHops,
    /// Not a change of routes.
    Verb(String),
    /// The table refused.
    Table(FibError),
    /// Not a rule as rules are written.
    Rule { rule: String, why: RuleFault },
    /// Not the number of a table.
    TableNumber(String),
    /// No rule has this priority.
    NoRule { priority: String },
    /// The rules name too many different masks of the mark.
    TooManyMasks,
    /// The rules name too many different sources.
    TooManySources,
    /// A word of a question has no value behind it.
    LacksValue(String),
    /// Not a field that a question may name.
    Field(String),
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleFault {
    /// It does not begin with its priority.
    Priority,
    /// A word has no value behind it.
    LacksValue(String),
    /// The value behind a word, in the words of its type.
    Value { word: String, why: String },
    /// A word that does not belong there.
    Unexpected(String),
    /// It does not say what to do.
    Action,
}

impl From<FibError> for RouteError {
    fn from(error: FibError) -> Self {
        RouteError::Table(error)
    }
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleFault::Priority => f.write_str("should begin with its priority"),
            RuleFault::LacksValue(word) => write!(f, "'{word}' lacks its value"),
            RuleFault::Value { word, why } => write!(f, "{word}: {why}"),
            RuleFault::Unexpected(word) => write!(f, "'{word}' is not expected"),
            RuleFault::Action => f.write_str("should end in 'table N' or 'unreachable'"),
        }
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::Syntax => f.write_str("expected 'ADDR/MASK [GATEWAY] OUTPUT'"),
            RouteError::NotConnected { route, output } => {
                write!(f, "bad route '{route}': output {output} is not connected")
            }
            RouteError::Value(why) => why.fmt(f),
            RouteError::Address(text) => write!(f, "'{text}' is not an address"),
            RouteError::Conflict { there } => write!(f, "conflict with existing route '{there}'"),
            RouteError::NotFound { route } => write!(f, "route '{route}' not found"),
            RouteError::TooManyHops => f.write_str("too many different next hops"),
            RouteError::Verb(verb) => write!(f, "bad command '{verb}'"),
            RouteError::Table(error) => error.fmt(f),
            RouteError::Rule { rule, why } => write!(f, "bad rule '{rule}': {why}"),
            RouteError::TableNumber(text) => write!(f, "'{text}' is not a table, 1 to 255"),
            RouteError::NoRule { priority } => write!(f, "there is no rule of priority '{priority}'"),
            RouteError::TooManyMasks => {
                f.write_str("the rules name too many different masks; they are as before")
            }
            RouteError::TooManySources => {
                f.write_str("the rules name too many different sources; they are as before")
            }
            RouteError::LacksValue(word) => write!(f, "'{word}' lacks its value"),
            RouteError::Field(word) => write!(f, "'{word}' is not one of from, tos, mark and iif"),
        }
    }
}

impl Error for RouteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RouteError::Table(error) => Some(error),
            _ => None,
        }
    }
}

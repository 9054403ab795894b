//! The little JSON that results need (RFC 8259).

use std::fmt;

/// A JSON value; objects keep their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// A number; integers are printed without a point.
    Number(f64),
    /// A string.
    Text(String),
    /// A truth value.
    Bool(bool),
    /// An array.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// An object from pairs.
    pub fn object<const N: usize>(pairs: [(&str, Json); N]) -> Self {
        Self::Object(pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, indent: usize) -> fmt::Result {
        match self {
            Self::Number(n) if n.is_finite() => write!(f, "{n}"),
            Self::Number(_) => write!(f, "null"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Text(text) => write_text(f, text),
            Self::List(items) => {
                let nested = items.iter().any(Self::is_container);
                write_items(f, nested.then_some(indent), ('[', ']'), items.len(), |f, i| {
                    items[i].write(f, indent + 1)
                })
            }
            Self::Object(pairs) => {
                let nested = pairs.iter().any(|(_, value)| value.is_container());
                write_items(f, nested.then_some(indent), ('{', '}'), pairs.len(), |f, i| {
                    write_text(f, &pairs[i].0)?;
                    write!(f, ": ")?;
                    pairs[i].1.write(f, indent + 1)
                })
            }
        }
    }

    fn is_container(&self) -> bool {
        matches!(self, Self::List(_) | Self::Object(_))
    }
}

/// A line an item at an indentation, or all on one line.
fn write_items(
    f: &mut fmt::Formatter<'_>,
    indent: Option<usize>,
    (open, close): (char, char),
    count: usize,
    mut item: impl FnMut(&mut fmt::Formatter<'_>, usize) -> fmt::Result,
) -> fmt::Result {
    write!(f, "{open}")?;
    for i in 0..count {
        match indent {
            Some(indent) => {
                write!(f, "{}\n{:width$}", if i == 0 { "" } else { "," }, "", width = indent + 1)?
            }
            None => write!(f, "{}", if i == 0 { "" } else { ", " })?,
        }
        item(f, i)?;
    }
    if let Some(indent) = indent {
        write!(f, "\n{:indent$}", "")?;
    }
    write!(f, "{close}")
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
            c => write!(f, "{c}")?,
        }
    }
    write!(f, "\"")
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

macro_rules! from_number {
    ($($t:ty),*) => { $(impl From<$t> for Json {
        fn from(n: $t) -> Self {
            Self::Number(n as f64)
        }
    })* };
}
from_number!(u8, u16, u32, u64, usize, f64);

impl From<bool> for Json {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_prints_json() {
        let value = Json::object([
            ("a\"b", 1u32.into()),
            ("c", vec![1.5, f64::NAN].into()),
            ("d", Json::List(vec![])),
        ]);
        assert_eq!(value.to_string(), "{\n \"a\\\"b\": 1,\n \"c\": [1.5, null],\n \"d\": []\n}");
    }
}

//! What the values of handlers are: counters, quantities, settings or words, in which unit, and how those of the
//! workers' replicas make one. What reads several of them together (`read`, `stats`, `metrics`) goes by this alone.

use std::collections::HashMap;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words, or a list.
    Text,
    /// What somebody set.
    Setting,
    /// A number of events since the start or the last reset.
    Counter,
    /// A quantity that grows and shrinks.
    Gauge,
    /// Nothing is read; writing does something.
    Action,
}

/// What a number is a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Of what the handler's name says.
    None,
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Entries of a table.
    Entries,
    /// Packets a second.
    PacketsPerSecond,
    /// Bits a second.
    BitsPerSecond,
    /// Bytes a second.
    BytesPerSecond,
}

impl Unit {
    /// The unit as a word of a metric's name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Packets => Some("packets"),
            Unit::Bytes => Some("bytes"),
            Unit::Entries => Some("entries"),
            Unit::PacketsPerSecond => Some("packets_per_second"),
            Unit::BitsPerSecond => Some("bits_per_second"),
            Unit::BytesPerSecond => Some("bytes_per_second"),
        }
    }
}

impl Kind {
    /// The kind as one word.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Setting => "setting",
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Action => "action",
        }
    }
}

/// How the values of the replicas of an element make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// The value of the first: all are the same.
    First,
    /// The sum; of lists that end in numbers line by line.
    Sum,
    /// The largest.
    Max,
    /// All of them, one after the other.
    Each,
}

impl Across {
    /// One value of those of the workers, in their order.
    pub fn combine(self, values: Vec<String>) -> String {
        let mut values = values.into_iter();
        let first = values.next().unwrap_or_default();
        match self {
            Across::First => first,
            Across::Each => values.fold(first, |all, next| all + &next),
            Across::Sum => values.fold(first, |sum, next| add(&sum, &next)),
            Across::Max => {
                values.fold(first, |max, next| if number(&next) > number(&max) { next } else { max })
            }
        }
    }
}

/// The numbers of a value: one without a name, or one a line behind its name.
pub fn numbers(value: &str) -> impl Iterator<Item = (&str, f64)> {
    value.lines().filter_map(|line| {
        let (name, number) = parts(line);
        Some((name.trim(), number.parse().ok()?))
    })
}

/// A line's name, with the space behind it, and its number.
fn parts(line: &str) -> (&str, &str) {
    let line = line.trim_end();
    line.split_at(line.rfind(char::is_whitespace).map_or(0, |at| at + 1))
}

fn number(text: &str) -> f64 {
    text.trim().parse().ok().filter(|number: &f64| !number.is_nan()).unwrap_or(f64::NEG_INFINITY)
}

/// The sum of two values, line by line by their names; lines that only one has stay.
fn add(a: &str, b: &str) -> String {
    let mut others: HashMap<&str, &str> = b.lines().map(parts).collect();
    let sum = |x: &str, y: &str| match (x.parse::<u64>(), y.parse::<u64>()) {
        (Ok(x), Ok(y)) => x.saturating_add(y).to_string(),
        _ => (number(x) + number(y)).to_string(),
    };
    let mut lines: Vec<String> = Vec::new();
    for (name, x) in a.lines().map(parts) {
        let both = others.remove(name).filter(|_| x.parse::<f64>().is_ok());
        lines.push(format!("{name}{}", both.map_or_else(|| x.to_owned(), |y| sum(x, y))));
    }
    let only_b = b.lines().filter(|line| others.contains_key(parts(line).0));
    lines.extend(only_b.map(str::to_owned));
    let end = if a.ends_with('\n') || b.ends_with('\n') { "\n" } else { "" };
    lines.join("\n") + end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combine(across: Across, values: [&str; 3]) -> String {
        across.combine(values.map(str::to_owned).to_vec())
    }

    #[test]
    fn replicas_make_one_value_as_their_handler_says() {
        let lengths = ["28", "28", "30"];
        assert_eq!(combine(Across::First, lengths), "28");
        assert_eq!(combine(Across::Sum, lengths), "86");
        assert_eq!(combine(Across::Max, lengths), "30");
        assert_eq!(combine(Across::Max, ["3", "12", "9"]), "12", "as numbers");
        assert_eq!(combine(Across::Max, ["nan", "3", "nan"]), "3", "who has none has no say");
        assert_eq!(combine(Across::Sum, ["1.5", "2", "0.25"]), "3.75");
        assert_eq!(combine(Across::Each, ["a\n", "b\n", ""]), "a\nb\n");
    }

    #[test]
    fn lists_are_summed_by_name() {
        let lists = ["no route 3\nttl 1\n", "ttl 4\nmtu 9\n", "ttl 1\n"];
        assert_eq!(combine(Across::Sum, lists), "no route 3\nttl 6\nmtu 9\n");
        assert_eq!(combine(Across::Sum, ["n/a", "n/a", "n/a"]), "n/a", "what are no numbers stays");
    }

    #[test]
    fn values_are_read_as_numbers_with_their_names() {
        let read = |text| numbers(text).collect::<Vec<_>>();
        assert_eq!(read("17"), [("", 17.0)]);
        assert_eq!(read("no route 3\nttl 1.5\nwords\n"), [("no route", 3.0), ("ttl", 1.5)]);
        assert_eq!(read(""), []);
    }
}

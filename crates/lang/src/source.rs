//! Source texts, spans in them, and the landmarks (`file:line`) that messages show.

use std::sync::Arc;

/// A text that spans may point into; an index into [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u32);

/// A byte range of one source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The smallest span that covers `self` and `other`; `self` if they lie in different texts.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { start: self.start.min(other.start), end: self.end.max(other.end), ..self }
    }
}

/// From `start` on, lines are counted from `line` in a file called `name` (a `#line` directive).
#[derive(Clone, Debug)]
struct LineMark {
    start: u32,
    line: u32,
    name: Arc<str>,
}

/// One source text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: Arc<str>,
    text: Arc<str>,
    /// Byte offset of every line's first byte.
    lines: Vec<u32>,
    marks: Vec<LineMark>,
}

/// Where something is, as a reader wants to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landmark {
    /// File name, as given or as set by a line directive.
    pub file: String,
    /// Line, from 1, counted from the last line directive if there is one.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Landmark {
    /// The form `file:line`. A name that ends in a colon or a blank gets the line appended bare, so that
    /// `line ` gives `line 3`.
    pub fn short(&self) -> String {
        match self.file.chars().last() {
            Some(c) if c == ':' || c.is_whitespace() => format!("{}{}", self.file, self.line),
            _ => format!("{}:{}", self.file, self.line),
        }
    }
}

/// All the texts of one configuration: the file itself and its libraries.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a text; `name` is what messages call it. Spans hold 32-bit offsets, so text past 4 GiB cannot be
    /// addressed; [`crate::parse`] refuses such a text.
    pub fn add(&mut self, name: &str, text: &str) -> FileId {
        let id = FileId(self.files.len() as u32);
        self.files.push(SourceFile {
            name: name.into(),
            text: text.into(),
            lines: line_starts(text),
            marks: vec![],
        });
        id
    }

    /// All texts, the first the configuration itself.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// The text `id` stands for; `None` for an id from another [`Sources`].
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// The text of a span; empty if the span is not of these sources.
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.file).and_then(|f| f.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// Records that `start` begins line `line` of `name` (`None` keeps the name, an empty one restores the
    /// file's own).
    pub(crate) fn mark_line(&mut self, id: FileId, start: u32, line: u32, name: Option<&str>) {
        let Some(file) = self.files.get_mut(id.0 as usize) else { return };
        // The parser may look at the same directive twice.
        if file.marks.last().is_some_and(|m| m.start >= start) {
            return;
        }
        let name = match name {
            Some("") => file.name.clone(),
            Some(name) => name.into(),
            None => file.marks.last().map_or_else(|| file.name.clone(), |m| m.name.clone()),
        };
        file.marks.push(LineMark { start, line, name });
    }

    /// Where a span begins.
    pub fn landmark(&self, span: Span) -> Landmark {
        let Some(file) = self.get(span.file) else {
            return Landmark { file: "<unknown>".into(), line: 0, column: 0 };
        };
        let index = file.line_index(span.start);
        let line_text = &file.text[file.lines[index] as usize..];
        let column = line_text
            .char_indices()
            .take_while(|(at, _)| (*at as u32) < span.start - file.lines[index])
            .count() as u32
            + 1;
        let mark = file.marks.iter().rev().find(|m| m.start <= span.start);
        let (name, line) = match mark {
            None => (&file.name, index as u32 + 1),
            Some(m) => (&m.name, m.line.saturating_add((index - file.line_index(m.start)) as u32)),
        };
        Landmark { file: name.to_string(), line, column }
    }
}

impl SourceFile {
    /// The name messages use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Index of the line that holds byte `at`.
    fn line_index(&self, at: u32) -> usize {
        self.lines.partition_point(|&start| start <= at).saturating_sub(1)
    }

    /// The line that holds byte `at`, without its end, and the offset of its first byte.
    pub fn line_at(&self, at: u32) -> (&str, u32) {
        let start = self.lines[self.line_index(at)];
        let rest = &self.text[start as usize..];
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        (&rest[..end], start)
    }
}

/// Offsets of the first byte of every line; LF, CR and CRLF all end a line.
fn line_starts(text: &str) -> Vec<u32> {
    let bytes = text.as_bytes();
    let mut starts = vec![0];
    for (at, &byte) in bytes.iter().enumerate() {
        let ends = byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        if ends {
            starts.push(at as u32 + 1);
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_end_counts_once() {
        assert_eq!(line_starts("a\nb\rc\r\nd"), [0, 2, 4, 7]);
    }

    #[test]
    fn columns_count_characters() {
        let mut sources = Sources::default();
        let file = sources.add("x", "ä b");
        let mark = sources.landmark(Span { file, start: 3, end: 4 });
        assert_eq!((mark.line, mark.column), (1, 3));
    }
}

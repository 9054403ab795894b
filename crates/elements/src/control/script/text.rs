//! Words of instructions and handlers' parameters.

use causeway_lang::args::first_word;

/// Takes the first word off `text`, with its quotes; what is left has no blanks in front.
pub(super) fn shift(text: &mut String) -> String {
    let (word, rest) = first_word(text);
    let (word, rest) = (word.to_owned(), without_comments(rest).to_owned());
    *text = rest;
    word
}

/// `text` without comments and blanks in front.
fn without_comments(text: &str) -> &str {
    let text = text.trim_start();
    let end = if text.starts_with("//") {
        text.find(['\n', '\r'])
    } else if let Some(inside) = text.strip_prefix("/*") {
        inside.find("*/").map(|at| at + 4)
    } else {
        return text;
    };
    end.map_or("", |end| without_comments(&text[end..]))
}

/// All words of `text`, with their quotes.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut rest = text.to_owned();
    std::iter::from_fn(|| Some(shift(&mut rest)).filter(|word| !word.is_empty())).collect()
}

/// The text without comments, as one argument.
pub(super) fn uncomment(text: &str) -> String {
    // A comment counts as a blank, and so does a run of them; what is in quotes stays.
    without_comments(text).trim_end().to_owned()
}

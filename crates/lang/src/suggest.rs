//! The nearest known name to a mistyped one.

/// The name in `known` nearest to `word` by edit distance, ignoring case, if one is near enough to be what was
/// meant: at most a third of the word's length away. Ties go to the first in alphabetical order, so that the
/// answer does not depend on the order of `known`.
pub fn nearest<I>(word: &str, known: I) -> Option<String>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let wanted: Vec<char> = word.chars().map(|c| c.to_ascii_lowercase()).collect();
    // Names are short; a hostile one must not cost quadratic time against every class.
    if wanted.len() > 64 {
        return None;
    }
    let limit = (wanted.len() / 3).max(1);
    let mut best: Option<(usize, String)> = None;
    for name in known {
        let name = name.as_ref();
        if name == word || name.len().abs_diff(word.len()) > 2 * limit + 2 {
            continue;
        }
        let distance = edit_distance(&wanted, name);
        let better = match &best {
            None => true,
            Some((least, chosen)) => (distance, name) < (*least, chosen.as_str()),
        };
        if distance <= limit && better {
            best = Some((distance, name.to_string()));
        }
    }
    best.map(|(_, name)| name)
}

/// A hint that proposes the nearest name, ready for [`crate::Diagnostic::hint_opt`].
pub fn did_you_mean<I>(word: &str, known: I) -> Option<String>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    nearest(word, known).map(|name| format!("did you mean '{name}'?"))
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `wanted` into `name` (optimal string
/// alignment), ignoring ASCII case.
fn edit_distance(wanted: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut before: Vec<usize> = vec![];
    let mut above: Vec<usize> = (0..=name.len()).collect();
    for (i, &a) in wanted.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &b) in name.iter().enumerate() {
            let mut cost = (above[j] + usize::from(a != b)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == name[j - 1] && wanted[i - 1] == b {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["Queue", "Discard", "Idle", "Counter"];

    #[test]
    fn swapped_letters_and_wrong_case_are_near() {
        assert_eq!(nearest("Qeueu", NAMES).as_deref(), None, "two swaps in five letters are too far");
        assert_eq!(nearest("Quueu", NAMES).as_deref(), None);
        assert_eq!(nearest("Qeuue", NAMES).as_deref(), Some("Queue"));
        assert_eq!(nearest("discard", NAMES).as_deref(), Some("Discard"));
        assert_eq!(nearest("Cuonter", NAMES).as_deref(), Some("Counter"));
    }

    #[test]
    fn nothing_is_proposed_for_a_strange_word() {
        assert_eq!(nearest("Zebra", NAMES), None);
        assert_eq!(nearest("", NAMES), None);
    }
}

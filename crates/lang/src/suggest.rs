//! The nearest known names to a mistyped one.

/// The names in `known` nearest to `word` by edit distance, ignoring case, if they are near enough to be what was
/// meant: at most a third of the word's length away. Equally near ones come in alphabetical order, three at most, so
/// that the answer does not depend on the order of `known`.
pub fn nearest<I>(word: &str, known: I) -> Vec<String>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    const MOST: usize = 3;
    let wanted: Vec<char> = word.chars().map(|c| c.to_ascii_lowercase()).collect();
    // All names of one letter are as near to each other. Names are short; a hostile one must not cost quadratic time against every
    // class.
    if wanted.len() < 2 || wanted.len() > 64 {
        return vec![];
    }
    let limit = (wanted.len() / 3).max(1);
    let mut best: (usize, Vec<String>) = (limit, vec![]);
    for name in known {
        let name = name.as_ref();
        if name == word || name.len().abs_diff(word.len()) > 2 * limit + 2 {
            continue;
        }
        let distance = edit_distance(&wanted, name);
        if distance < best.0 {
            best = (distance, vec![]);
        }
        if distance == best.0 {
            best.1.push(name.to_string());
        }
    }
    best.1.sort();
    best.1.dedup();
    best.1.truncate(MOST);
    best.1
}

/// A hint that proposes the nearest names, ready for [`crate::Diagnostic::hint_opt`].
pub fn did_you_mean<I>(word: &str, known: I) -> Option<String>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let mut names = nearest(word, known);
    let last = names.pop()?;
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    Some(match quoted.is_empty() {
        true => format!("did you mean '{last}'?"),
        false => format!("did you mean {} or '{last}'?", quoted.join(", ")),
    })
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

    const NONE: [&str; 0] = [];

    #[test]
    fn swapped_letters_and_wrong_case_are_near() {
        assert_eq!(nearest("Qeueu", NAMES), NONE, "two swaps in five letters are too far");
        assert_eq!(nearest("Quueu", NAMES), NONE);
        assert_eq!(nearest("Qeuue", NAMES), ["Queue"]);
        assert_eq!(nearest("discard", NAMES), ["Discard"]);
        assert_eq!(nearest("Cuonter", NAMES), ["Counter"]);
    }

    #[test]
    fn equally_near_names_are_all_proposed() {
        let known = ["SetIPDSCP", "SetIPECN", "GetIP", "SetIP"];
        assert_eq!(nearest("RetIP", known), ["GetIP", "SetIP"]);
        assert_eq!(did_you_mean("RetIP", known).as_deref(), Some("did you mean 'GetIP' or 'SetIP'?"));
        assert_eq!(did_you_mean("Zebra", known), None);
    }

    #[test]
    fn nothing_is_proposed_for_a_strange_word() {
        assert_eq!(nearest("Zebra", NAMES), NONE);
        assert_eq!(nearest("", NAMES), NONE);
        assert_eq!(nearest("A", ["a", "b", "ab"]), NONE, "any letter is as near");
    }
}

//! `causeway new-element`: begins an element class in a checkout of the sources.

use crate::cli::NewElementArgs;
use crate::output;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the element library is in a checkout.
const LIBRARY: &str = "crates/elements/src";
/// What the file of an element calls other things by.
const TAKEN: &[&str] = &[
    "Across",
    "Anno",
    "Batch",
    "Box",
    "Builder",
    "Conf",
    "Configure",
    "Copies",
    "Counter",
    "Cx",
    "DropReason",
    "Element",
    "Err",
    "Invalid",
    "Lowers",
    "None",
    "Ok",
    "Option",
    "OrDrop",
    "Packet",
    "Program",
    "Reason",
    "Result",
    "Run",
    "Self",
    "Settings",
    "Skeleton",
    "Some",
    "Spec",
    "String",
    "Unit",
    "Vec",
    "Verdict",
];
/// Words that no module can have as its name.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "tests", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];
/// Widest line of the sources.
const WIDTH: usize = 110;

/// Writes the file of a class and lists the class in its folder.
pub fn new_element(args: &NewElementArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let found = here.ancestors().map(|dir| dir.join(LIBRARY)).find(|dir| dir.join("lib.rs").exists());
    let library =
        found.with_context(|| format!("{LIBRARY} is in no folder above: go to a checkout of the sources"))?;
    let file = begin(&library, &args.name, &args.folder)?;
    let (file, folder) = (file.display(), &args.folder);
    output::print(format!(
        "wrote {file}\nlisted it in {LIBRARY}/{folder}/mod.rs\n\
         next: write what it does; put its live settings into crates/elements/tests/settings.rs; then\n  \
         cargo test -p causeway-elements && make docs\n\
         docs/elements-how-to.md goes through the parts\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// As [`new_element`], in the library at `library`; returns the path of the new file.
fn begin(library: &Path, name: &str, folder: &str) -> Result<PathBuf> {
    check_name(name)?;
    let list = library.join(folder).join("mod.rs");
    if !list.exists() || folder.contains('/') {
        bail!("there is no subject '{folder}' in {LIBRARY}; there are {}", subjects(library).join(", "));
    }
    let module = snake_case(name);
    let file = library.join(folder).join(format!("{module}.rs"));
    ensure!(!file.exists(), "{} exists already", file.display());
    let text = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let text = listed(&text, &module)
        .with_context(|| format!("{} has no list `SPECS: &[&Spec] = &[...];`", list.display()))?;
    let element = causeway_elements::SKELETON
        .replace("Skeleton", name)
        .replace("\"skeleton\"", &format!("\"{folder}\""));
    fs::write(&file, element).with_context(|| format!("cannot write {}", file.display()))?;
    fs::write(&list, text).with_context(|| format!("cannot write {}", list.display()))?;
    Ok(file)
}

/// An error if no class can have that name, or one has it.
fn check_name(name: &str) -> Result<()> {
    let shape =
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(|c| c.is_ascii_alphanumeric());
    ensure!(
        shape,
        "'{name}' is no class name: it must be ASCII letters and digits, of which the first is a capital"
    );
    ensure!(
        name.chars().any(|c| c.is_ascii_lowercase()),
        "'{name}' is no class name: it must have small letters, as the names of constants have none"
    );
    ensure!(!TAKEN.contains(&name), "'{name}' cannot be a class name: elements call something else by it");
    let module = snake_case(name);
    ensure!(
        !KEYWORDS.contains(&module.as_str()),
        "'{name}' cannot be a class name: '{module}' is a word of Rust"
    );
    let known = causeway_elements::library().get(name).map(|spec| spec.name);
    if let Some(known) = known {
        let also = if known == name { String::new() } else { format!(": it is another name of {known}") };
        bail!("there is a class '{name}' already{also}");
    }
    Ok(())
}

fn subjects(library: &Path) -> Vec<String> {
    let folders = fs::read_dir(library).into_iter().flatten().flatten();
    let subjects =
        folders.filter(|f| fs::read_to_string(f.path().join("mod.rs")).is_ok_and(|t| list_of(&t).is_some()));
    let mut names: Vec<String> = subjects.map(|f| f.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The name of the class's module: `check_ip_header` for `CheckIPHeader`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (i, c) in letters.iter().enumerate() {
        let begins_word = i > 0
            && c.is_ascii_uppercase()
            && (!letters[i - 1].is_ascii_uppercase()
                || letters.get(i + 1).is_some_and(|n| n.is_ascii_lowercase()));
        if begins_word {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// Where in a `mod.rs` the list of the classes of its subject is, from behind the equals sign to the semicolon, and what
/// it lists.
fn list_of(text: &str) -> Option<(std::ops::Range<usize>, &str)> {
    const HEAD: &str = "SPECS: &[&Spec] =";
    let start = text.find(HEAD)? + HEAD.len();
    let end = start + text[start..].find(';')?;
    let list = text[start..end].trim().strip_prefix("&[")?.strip_suffix(']')?;
    Some((start..end, list))
}

/// The text of a `mod.rs` with `module` among its modules and its classes, in the form that `cargo fmt` gives it.
fn listed(text: &str, module: &str) -> Option<String> {
    let (range, list) = list_of(text)?;
    let mut classes: Vec<String> =
        list.split(',').map(|c| c.trim().to_owned()).filter(|c| !c.is_empty()).collect();
    classes.push(format!("&{module}::SPEC"));
    classes.sort();
    let line_start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let one_line = format!("&[{}]", classes.join(", "));
    let new = if range.start - line_start + 1 + one_line.len() < WIDTH {
        format!(" {one_line}")
    } else if 4 + one_line.len() < WIDTH {
        format!("\n    {one_line}")
    } else {
        format!(" &[\n{}]", classes.iter().map(|c| format!("    {c},\n")).collect::<String>())
    };
    let text = format!("{}{new}{}", &text[..range.start], &text[range.end..]);
    let name = |line: &str| Some(line.strip_suffix(';')?.split_once("mod ")?.1.to_owned());
    let line = format!("mod {module};\n");
    let mut at = 0;
    // Behind the last module that comes before it, or in front of the first.
    let mut place = None;
    for l in text.split_inclusive('\n') {
        if let Some(other) = name(l.trim_end()) {
            match other.as_str() < module {
                true => place = Some(at + l.len()),
                false => place = place.or(Some(at)),
            }
        }
        at += l.len();
    }
    place.map(|at| format!("{}{line}{}", &text[..at], &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library with one subject, in a folder that goes with it.
    struct Sources(PathBuf);

    impl Sources {
        fn new(test: &str) -> Self {
            let dir =
                std::env::temp_dir().join(format!("causeway-new-element-{test}-{}", std::process::id()));
            fs::create_dir_all(dir.join("ip")).unwrap();
            fs::write(
                dir.join("ip/mod.rs"),
                "//! IP.\n\nuse causeway_engine::Spec;\n\nmod apple;\npub(crate) mod pear;\n\n\
                 /// The classes.\npub(crate) const SPECS: &[&Spec] = &[&apple::SPEC, &pear::SPEC];\n",
            )
            .unwrap();
            Sources(dir)
        }
    }

    impl Drop for Sources {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_file_is_the_skeleton_under_its_name_and_listed() {
        let sources = Sources::new("file");
        let file = begin(&sources.0, "CheckOrange", "ip").unwrap();
        assert_eq!(file, sources.0.join("ip/check_orange.rs"));
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains("name: \"CheckOrange\"") && text.contains("category: \"ip\""));
        assert!(!text.to_lowercase().contains("skeleton"));
        let back = text.replace("CheckOrange", "Skeleton").replace("\"ip\"", "\"skeleton\"");
        assert_eq!(back, causeway_elements::SKELETON, "which is compiled and tested as it is");
        let list = fs::read_to_string(sources.0.join("ip/mod.rs")).unwrap();
        assert!(list.contains("mod apple;\nmod check_orange;\npub(crate) mod pear;\n"), "{list}");
        assert!(list.contains("&[&apple::SPEC, &check_orange::SPEC, &pear::SPEC];"), "{list}");
        let again = begin(&sources.0, "CheckOrange", "ip").unwrap_err().to_string();
        assert!(again.ends_with("check_orange.rs exists already"), "{again}");
    }

    #[test]
    fn long_lists_are_one_a_line_and_the_first_and_the_last_have_their_places() {
        let text = "mod b;\n\nconst SPECS: &[&Spec] = &[&b::SPEC];\n";
        let long = "a_name_that_is_so_long_that_the_list_of_classes_does_not_fit_one_line_any_more_together";
        assert_eq!(
            listed(text, long).unwrap(),
            format!(
                "mod {long};\nmod b;\n\nconst SPECS: &[&Spec] = &[\n    &{long}::SPEC,\n    &b::SPEC,\n];\n"
            )
        );
        assert!(listed(text, "c").unwrap().starts_with("mod b;\nmod c;\n\n"));
        let middle = "a_name_that_is_so_long_that_the_list_begins_a_line_of_its_own_and_fits_it_then";
        let list = format!("const SPECS: &[&Spec] =\n    &[&{middle}::SPEC, &b::SPEC];\n");
        assert!(listed(text, middle).unwrap().ends_with(&list));
        assert!(listed(&format!("mod b;\n{list}"), "c").unwrap().contains("&[\n    &a_name"));
        assert_eq!(listed("mod b;\n", "c"), None);
    }

    #[test]
    fn names_that_cannot_be_are_refused_with_the_reason() {
        let sources = Sources::new("names");
        let why = |name: &str, folder: &str| begin(&sources.0, name, folder).unwrap_err().to_string();
        for name in ["checkOrange", "Check_Orange", "3Checks", "", "Chéck", "Check/Orange"] {
            assert!(why(name, "ip").contains("it must be ASCII letters and digits"), "{name}");
        }
        assert!(why("CHECK", "ip").contains("must have small letters"));
        assert!(
            why("Packet", "ip").contains("something else") && why("Option", "ip").contains("something else")
        );
        assert!(why("Match", "ip").ends_with("'match' is a word of Rust"));
        assert_eq!(why("CheckIPHeader", "ip"), "there is a class 'CheckIPHeader' already");
        assert_eq!(
            why("FullNoteQueue", "ip"),
            "there is a class 'FullNoteQueue' already: it is another name of Queue"
        );
        assert_eq!(
            why("CheckOrange", "fruit"),
            format!("there is no subject 'fruit' in {LIBRARY}; there are ip")
        );
        assert!(why("CheckOrange", "../ip").starts_with("there is no subject"));
        assert_eq!(fs::read_dir(sources.0.join("ip")).unwrap().count(), 1, "nothing was written");
    }

    #[test]
    fn modules_are_named_by_words() {
        for (name, module) in [
            ("CheckIPHeader", "check_ip_header"),
            ("Null", "null"),
            ("GetIP6Address", "get_ip6_address"),
            ("IPGWOptions", "ipgw_options"),
            ("VLANEncap", "vlan_encap"),
        ] {
            assert_eq!(snake_case(name), module);
        }
    }
}

//! KernelHandlerProxy.

use super::script::without_number;
use causeway_engine::prelude::*;
use causeway_engine::spec::Access;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

pub(crate) static SPEC: Spec = Spec {
    name: "KernelHandlerProxy",
    category: "control",
    summary: "reads and writes handlers of Click's kernel module",
    ports: "0/0",
    doc: "Has a handler `e.h` for each handler `h` of an element `e` of the Click router in the kernel, which it reads and \
          writes as the file `/click/e/h`. The kernel module is Click's; without it all of them say that no router is \
          installed. Causeway itself has no part in the kernel that has handlers.",
    args: Own::ARGS,
    example: "p :: KernelHandlerProxy; InfiniteSource(LIMIT 1, STOP true) -> Discard;",
    see: &["ControlSocket"],
    copies: Copies::One,
    build: configured::<Own>,
    ..Spec::DEFAULT
};

settings! {
    struct Own {
        verbose: bool = keyword("VERBOSE", "boolean", "whether failed reads are logged; default false"), or(false);
    }
}

/// Where the module's file system is mounted.
const ROOT: &str = "/click";

/// Element and handler, if the name is one that a file may have.
fn parts(name: &str) -> Option<(&str, &str)> {
    let (element, handler) = name.split_once('.')?;
    let of_element = |c: char| c.is_ascii_alphanumeric() || "_/@".contains(c);
    let of_handler = |c: char| (' '..='~').contains(&c) && c != '/';
    let plain = !handler.is_empty() && handler != "." && handler != "..";
    (plain && element.chars().all(of_element) && handler.chars().all(of_handler))
        .then_some((element, handler))
}

fn path(name: &str) -> Option<PathBuf> {
    let (element, handler) = parts(name)?;
    let hidden = Path::new(ROOT).join(".h").exists();
    Some(
        Path::new(ROOT)
            .join(element.trim_start_matches('/'))
            .join(if hidden { ".h" } else { "" })
            .join(handler),
    )
}

/// Why the file of a handler cannot be opened, in Click's words.
fn why_not(name: &str, error: &io::Error) -> String {
    let element = parts(name).map_or("", |(element, _)| element);
    match error.kind() {
        ErrorKind::NotFound if !Path::new(ROOT).exists() => "No router installed".to_owned(),
        ErrorKind::NotFound if !Path::new(ROOT).join(element).exists() => {
            format!("No element named '{element}'")
        }
        ErrorKind::NotFound => format!("No handler named '{name}'"),
        ErrorKind::PermissionDenied => format!("Permission denied for '{name}'"),
        _ => format!("Handler '{name}' error: {}", without_number(error)),
    }
}

impl Element for Own {
    fn own_handler(&self, name: &str) -> Option<Access> {
        parts(name).map(|_| Access::ReadWrite)
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let path = path(handler).ok_or("Bad handler name")?;
        std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|e| {
            let why = why_not(handler, &e);
            if self.verbose {
                log::info!("{why}");
            }
            // A read handler has no one to tell.
            Error::new("")
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let path = path(handler).ok_or("Bad handler name")?;
        let opened = std::fs::File::options().write(true).truncate(true).open(&path);
        let written = opened.and_then(|mut file| std::io::Write::write_all(&mut file, value.as_bytes()));
        written.map_err(|e| {
            cx.set_status(e.raw_os_error().map_or(0, |number| -number));
            Error::new(why_not(handler, &e))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn names_stay_below_the_root() {
        assert_eq!(path("a/b.count"), Some(PathBuf::from("/click/a/b/count")));
        assert_eq!(path(".list"), Some(PathBuf::from("/click/list")));
        for name in ["count", "a.", "a..", "a...", "../x.y", "a b.c", "a.b/c"] {
            assert_eq!(path(name), None, "{name}");
        }
    }

    #[test]
    fn without_the_module_nothing_is_installed() {
        if Path::new(ROOT).exists() {
            return;
        }
        let mut h = Harness::new(&SPEC, "", 0, 0).unwrap();
        assert_eq!(h.read("x.y"), Err(String::new()));
        assert_eq!(h.write("x.y", "5"), Err("No router installed".to_owned()));
        assert!(h.read("nonsense").is_err());
    }
}

//! `causeway undead`, click-undead(1).

use super::{AnyClass, transform};
use crate::cli::UndeadArgs;
use crate::explained::Explained;
use crate::logger::answer;
use anyhow::Result;
use causeway_lang::transform;
use std::process::ExitCode;

/// Removes dead elements.
pub fn undead(args: &UndeadArgs) -> Result<ExitCode> {
    transform(&args.common, false, |_, flat| {
        let classes = AnyClass(causeway_elements::library());
        let live = transform::undead(&flat.graph, &classes);
        live.wrong.iter().for_each(|text| answer(&format!("warning: {text}\n")));
        if live.graph.elements.is_empty() && !flat.graph.elements.is_empty() {
            return Err(Explained::from("warning: no live elements in configuration\n"));
        }
        if args.verbose {
            live.removed.iter().for_each(|text| answer(&format!("removing {text}\n")));
        }
        Ok(flat.text(&live.graph))
    })
}

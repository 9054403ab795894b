//! `causeway flatten`, click-flatten(1).

use super::transform;
use crate::cli::FlattenArgs;
use anyhow::Result;
use std::process::ExitCode;

/// Replaces compound elements by their members.
pub fn flatten(args: &FlattenArgs) -> Result<ExitCode> {
    transform(&args.common, args.expand_vars, |_, flat| {
        let elements = flat.graph.elements.iter();
        let mut lines: Vec<String> = if args.classes {
            elements.map(|e| e.class.clone()).collect()
        } else if args.names {
            elements.map(|e| e.name.clone()).collect()
        } else if args.declarations {
            elements.map(causeway_lang::ElementDecl::described).collect()
        } else {
            return Ok(flat.text(&flat.graph));
        };
        lines.sort();
        lines.dedup();
        Ok(lines.into_iter().map(|line| line + "\n").collect())
    })
}

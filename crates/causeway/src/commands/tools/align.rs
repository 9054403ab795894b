//! `causeway align`, click-align(1).

use super::transform;
use crate::cli::AlignArgs;
use crate::logger;
use anyhow::Result;
use std::process::ExitCode;

/// Writes the configuration as it is, and says why.
pub fn align(args: &AlignArgs) -> Result<ExitCode> {
    transform(&args.common, false, |source, flat| {
        logger::answer(&format!(
            "{}: warning: nothing to align: every element reads packets at any alignment\n",
            source.name()
        ));
        Ok(flat.text(&flat.graph))
    })
}

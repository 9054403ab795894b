//! `causeway man`: the manual page, one for all commands.

use crate::output;
use anyhow::Result;
use clap::Command;
use clap_mangen::Man;
use std::process::ExitCode;

/// What the page says of files.
const FILES: &str = "\
.SH FILES
.TP
/run/causeway
Control sockets, records and shared counters of root's routers; below it, in up, those of routers that root has started \
and that are another user now. Other users' are in $XDG_RUNTIME_DIR/causeway, or /tmp/causeway-UID without it.
";

/// Prints the page of `command`, which must be built.
pub fn man(command: &Command, exit_status: &[(&str, &str)]) -> Result<ExitCode> {
    let mut page = Vec::new();
    let whole = Man::new(command.clone());
    whole.render_title(&mut page)?;
    whole.render_name_section(&mut page)?;
    whole.render_synopsis_section(&mut page)?;
    let mut page = String::from_utf8(page)?;
    for each in command.get_subcommands().filter(|c| c.get_name() != "help") {
        page += &section(each)?;
        for inner in each.get_subcommands().filter(|c| c.get_name() != "help") {
            page += &section(inner)?;
        }
    }
    page += ".SH EXIT STATUS\n";
    for (status, meaning) in exit_status {
        page += &format!(".TP\n{status}\n{meaning}\n");
    }
    output::print(page + FILES)?;
    Ok(ExitCode::SUCCESS)
}

/// What a command does, how it is called, and its options; then the same of its own commands.
fn section(command: &Command) -> Result<String> {
    let of = Man::new(command.clone());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default().replace('-', "\\-");
    let mut parts = Vec::new();
    of.render_synopsis_section(&mut parts)?;
    if command.get_arguments().next().is_some() {
        of.render_options_section(&mut parts)?;
    }
    // A section of its own to the renderer, a part of the command's here.
    let parts = String::from_utf8(parts)?.replace(".SH ", ".SS ");
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let mut section = format!(".SH \"{}\"\n{about}.\n{parts}", name.to_uppercase());
    for each in command.get_subcommands().filter(|c| c.get_name() != "help") {
        section += &self::section(each)?;
    }
    Ok(section)
}

//! `causeway handlers`, `read` and `write`: a running router over its control socket.

use crate::cli::{HandlersArgs, ReadArgs, WriteArgs};
use crate::control::Client;
use crate::output;
use anyhow::{Result, bail};
use std::io::Read;
use std::process::ExitCode;

/// Lists handlers.
pub fn list(args: &HandlersArgs) -> Result<ExitCode> {
    let mut client = Client::connect(args.socket.socket.as_deref())?;
    match &args.element {
        Some(element) => print(&client.read(&format!("{element}.handlers"), "")?)?,
        None => {
            output::print_line("# the router")?;
            print(&client.read("handlers", "")?)?;
            let elements = client.read("list", "")?;
            output::print_line("# elements; see theirs with `causeway handlers ELEMENT`")?;
            elements.lines().skip(1).try_for_each(output::print_line)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a handler.
pub fn read(args: &ReadArgs) -> Result<ExitCode> {
    let mut client = Client::connect(args.socket.socket.as_deref())?;
    print(&client.read(&args.handler, &args.arguments.join(" "))?)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a handler.
pub fn write(args: &WriteArgs) -> Result<ExitCode> {
    let value = match args.value.as_slice() {
        [dash] if dash == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        words => words.join(" "),
    };
    // An empty text is a configuration too: a forgotten `-` would take the whole graph away.
    if args.handler == "hotconfig" && value.trim().is_empty() {
        bail!("hotconfig was given no configuration; `causeway write hotconfig - < FILE` reads one");
    }
    Client::connect(args.socket.socket.as_deref())?.write(&args.handler, &value)?;
    Ok(ExitCode::SUCCESS)
}

fn print(value: &str) -> std::io::Result<()> {
    let newline = if value.is_empty() || value.ends_with('\n') { "" } else { "\n" };
    output::print(format_args!("{value}{newline}"))
}

//! What the tools that read configurations and write others take: the same as commands, and under Click's names
//! (`click-flatten`).

#![allow(rustdoc::broken_intra_doc_links, reason = "brackets in the help are what users write")]

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What is common to tools that read one configuration and write one.
#[derive(Args)]
pub struct TransformArgs {
    /// Configuration file, - for standard input, which is read without one; and definitions, NAME=VALUE
    #[arg(value_name = "FILE | NAME=VALUE")]
    pub operands: Vec<String>,
    /// Read the configuration from FILE
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<String>,
    /// Take TEXT as the configuration
    #[arg(short, long, value_name = "TEXT")]
    pub expression: Option<String>,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Look for libraries along PATH
    #[arg(short = 'C', long, value_name = "PATH")]
    pub clickpath: Option<String>,
}

/// `flatten`.
#[derive(Args)]
pub struct FlattenArgs {
    /// What is read and where the result goes
    #[command(flatten)]
    pub common: TransformArgs,
    /// Print the classes of the configuration instead, sorted
    #[arg(short, long, group = "what")]
    pub classes: bool,
    /// Print the names of the elements instead, sorted
    #[arg(short, long, visible_alias = "elements", group = "what")]
    pub names: bool,
    /// Print `name :: class` of the elements instead, sorted
    #[arg(short, long, visible_alias = "decls", group = "what")]
    pub declarations: bool,
    /// Print the configuration alone, not an archive, which this never writes
    #[arg(long, group = "what")]
    pub config: bool,
    /// Put the values of the variables into the configuration instead of the definitions
    #[arg(long, overrides_with = "no_expand_vars")]
    pub expand_vars: bool,
    /// Keep variables that are defined outside of compound elements, which is the default
    #[arg(long, hide = true)]
    pub no_expand_vars: bool,
}

/// `click-check`; the command `check` says more.
#[derive(Args)]
pub struct ClickCheckArgs {
    /// What is read and where the result goes
    #[command(flatten)]
    pub common: TransformArgs,
    /// Write the configuration to standard output if it is right
    #[arg(short = 'p', long)]
    pub filter: bool,
    /// Do not say that it is right
    #[arg(short, long)]
    pub quiet: bool,
    /// Check for the user-level driver, which is the default and the only one
    #[arg(short, long)]
    pub userlevel: bool,
    /// Check for the Linux kernel's driver, which there is not
    #[arg(short = 'l', long, visible_alias = "kernel", visible_short_alias = 'k')]
    pub linuxmodule: bool,
    /// Check for the BSD kernel's driver, which there is not
    #[arg(short, long)]
    pub bsdmodule: bool,
}

/// `undead`.
#[derive(Args)]
pub struct UndeadArgs {
    /// What is read and where the result goes
    #[command(flatten)]
    pub common: TransformArgs,
    /// Print the configuration alone, not an archive, which this never writes
    #[arg(short, long)]
    pub config: bool,
    /// Say what is removed and why
    #[arg(short = 'V', long)]
    pub verbose: bool,
    /// Keep what the Linux kernel's driver needs; there is none here
    #[arg(short, long, hide = true)]
    pub kernel: bool,
    /// Keep what the user-level driver needs, which is the default
    #[arg(short, long, hide = true)]
    pub user: bool,
}

/// `align`.
#[derive(Args)]
pub struct AlignArgs {
    /// What is read and where the result goes
    #[command(flatten)]
    pub common: TransformArgs,
    /// Of Click: insert checks instead
    #[arg(long, hide = true)]
    pub assertions: bool,
    /// Of Click: which driver
    #[arg(short, long, hide = true)]
    pub bsdmodule: bool,
    /// Of Click: which driver
    #[arg(short = 'l', long, alias = "kernel", short_alias = 'k', hide = true)]
    pub linuxmodule: bool,
    /// Of Click: which driver
    #[arg(short, long, hide = true)]
    pub userlevel: bool,
}

/// `xform`.
#[derive(Args)]
pub struct XformArgs {
    /// Configuration file, - for standard input, then files of patterns; and definitions, NAME=VALUE
    #[arg(value_name = "FILE | PATTERNS | NAME=VALUE")]
    pub operands: Vec<String>,
    /// Read patterns from FILE; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub patterns: Vec<PathBuf>,
    /// Read the configuration from FILE
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<String>,
    /// Take TEXT as the configuration
    #[arg(short, long, value_name = "TEXT")]
    pub expression: Option<String>,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the replacements by the patterns
    #[arg(short, long)]
    pub reverse: bool,
}

/// `combine`.
#[derive(Args)]
pub struct CombineArgs {
    /// Routers, NAME=FILE or FILE, and links, NAME1.DEVICE=NAME2.DEVICE: what the first sends there, the second receives
    #[arg(value_name = "NAME=FILE | LINK")]
    pub operands: Vec<String>,
    /// Name of the next router; may be repeated
    #[arg(short, long, value_name = "NAME")]
    pub name: Vec<String>,
    /// Read a router from FILE; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub file: Vec<String>,
    /// Take TEXT as a router; may be repeated
    #[arg(short, long, value_name = "TEXT")]
    pub expression: Vec<String>,
    /// A link; may be repeated
    #[arg(short, long, value_name = "LINK")]
    pub link: Vec<String>,
    /// Write the configuration alone, not the archive that uncombine takes apart
    #[arg(short, long)]
    pub config: bool,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `uncombine`.
#[derive(Args)]
pub struct UncombineArgs {
    /// What combine wrote, - for standard input, and the name of a router in it
    #[arg(value_name = "FILE [NAME]", num_args = 0..=2)]
    pub operands: Vec<String>,
    /// Read from FILE
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<String>,
    /// Name of the router wanted; one in a combined one is NAME1/NAME2
    #[arg(short, long, value_name = "NAME")]
    pub name: Option<String>,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `pretty`.
#[derive(Args)]
pub struct PrettyArgs {
    /// What is read and where the result goes
    #[command(flatten)]
    pub common: TransformArgs,
    /// Link classes to URL, where %s stands for the class; without it to its part of the page
    #[arg(short = 'u', long, value_name = "URL")]
    pub class_docs: Option<String>,
    /// Write the graph for Graphviz instead
    #[arg(long)]
    pub dot: bool,
    /// Of Click: which driver
    #[arg(long, hide = true)]
    pub userlevel: bool,
}

/// `new`.
#[derive(Subcommand)]
pub enum NewCommand {
    /// Write the standard router between interfaces, for IPv4 and IPv6
    Router(NewRouterArgs),
}

/// `new router`.
#[derive(Args)]
pub struct NewRouterArgs {
    /// Interfaces, IF or IF=ADDRESS,...: an Ethernet address, and IPv4 and IPv6 addresses with prefix lengths. What is not
    /// said is read from the machine
    #[arg(required = true, value_name = "IF[=ADDRESS,...]")]
    pub interfaces: Vec<String>,
    /// A further route, 'PREFIX [GATEWAY] IF'; may be repeated
    #[arg(short, long, value_name = "ROUTE")]
    pub route: Vec<String>,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

//! Measures the lookup tables: `make bench-fib`.
//!
//! Needs nothing but the repository: it makes tables with the prefix lengths of the Internet. Real tables and
//! update streams are given by path. With DPDK's development files present at build time its tables take part.
//! All tables are measured in interleaved rounds on one processor and every result is checked against a slow
//! reference, so what counts are ratios inside one run.

mod contender;
mod disturb;
#[cfg(dpdk)]
mod dpdk;
mod library;
mod options;
mod policy;
mod race;
mod random;
mod report;
mod tables;

use causeway_fib::baseline::{dir24_8::Dir24_8, lctrie::LcTrie, radix::Radix, ranges::Ranges};
use causeway_fib::rivals::{btree6::BTree6, poptrie::Poptrie};
use causeway_fib::{Compact16, LeftRight, Lines6, Rank24};

use contender::{Contender, ours, pin_to};
use options::{Command, Options, USAGE};
use report::Section;
use tables::{Family, Route, Update};

type Contenders<A> = Vec<Box<dyn Contender<A>>>;
/// Builds all tables of a family from the same routes.
type Build<A> = fn(&[Route<A>], &Options) -> Result<Contenders<A>, String>;

fn contenders4(routes: &[Route<u32>], options: &Options) -> Result<Contenders<u32>, String> {
    let mut all: Contenders<u32> = vec![
        ours::<u32, Rank24>(routes, true),
        ours::<u32, Compact16>(routes, true),
        ours::<u32, Radix<u32>>(routes, true),
        ours::<u32, LcTrie<u32>>(routes, true),
        ours::<u32, Dir24_8>(routes, true),
        ours::<u32, Poptrie>(routes, false),
        ours::<u32, Ranges<u32>>(routes, false),
    ];
    #[cfg(dpdk)]
    if options.dpdk {
        all.extend([1, 2, 4].into_iter().filter_map(|bytes| dpdk::fib(routes, bytes)));
        all.extend(dpdk::lpm(routes));
    }
    all.extend(library(routes, options)?);
    keep(&mut all, options);
    Ok(all)
}

fn contenders6(routes: &[Route<u128>], options: &Options) -> Result<Contenders<u128>, String> {
    let mut all: Contenders<u128> = vec![
        ours::<u128, Lines6>(routes, true),
        ours::<u128, Radix<u128>>(routes, true),
        ours::<u128, LcTrie<u128>>(routes, true),
        ours::<u128, Poptrie>(routes, false),
        ours::<u128, BTree6>(routes, false),
        ours::<u128, Ranges<u128>>(routes, false),
    ];
    #[cfg(dpdk)]
    if options.dpdk {
        all.extend(dpdk::fib6(routes));
        all.extend(dpdk::lpm6(routes));
    }
    all.extend(library(routes, options)?);
    keep(&mut all, options);
    Ok(all)
}

/// Poptrie's own library, if it is given.
fn library<A: Family>(
    routes: &[Route<A>],
    options: &Options,
) -> Result<Option<Box<dyn Contender<A>>>, String> {
    options.poptrie.as_ref().map(|path| library::poptrie(path, routes)).transpose()
}

fn keep<A>(all: &mut Contenders<A>, options: &Options) {
    all.retain(|one| {
        options.only.is_empty() || options.only.iter().any(|name| one.name().contains(name.as_str()))
    });
}

fn measure<A: Family>(
    stem: &str,
    title: &str,
    routes: &[Route<A>],
    stream: Option<&[Update<A>]>,
    contenders: Build<A>,
    options: &Options,
) -> Result<Section, String> {
    let traffic = race::traffic(routes, 1 << options.queries_log2, 7);
    let mut all = contenders(routes, options)?;
    let mut scores = race::lookups(&all, &traffic, routes.len(), options.rounds);
    if let Some(stream) = stream {
        race::updates(&mut all, routes, stream, &mut scores);
    }
    let section = Section { title: title.to_owned(), stem: stem.to_owned(), scores };
    report::print(&section);
    report::print_ratios(&section, &["rank24", "compact16", "lines6"]);
    Ok(section)
}

fn load<A: Family>(paths: &(Option<String>, Option<String>), count: usize) -> Result<Vec<Route<A>>, String> {
    match &paths.0 {
        Some(path) => tables::read(path),
        None => Ok(tables::synthetic(count, 1)),
    }
}

fn load_updates<A: Family>(
    paths: &(Option<String>, Option<String>),
    routes: &[Route<A>],
) -> Result<Vec<Update<A>>, String> {
    match &paths.1 {
        Some(path) => tables::read_updates(path, 3),
        None => Ok(tables::synthetic_updates(routes, 400_000, 3)),
    }
}

/// Both next-hop mixes of one family.
fn family<A: Family>(
    paths: &(Option<String>, Option<String>),
    count: usize,
    contenders: Build<A>,
    options: &Options,
) -> Result<Vec<Section>, String> {
    let origin = if paths.0.is_some() { "table from a file" } else { "synthetic table" };
    let routes = load::<A>(paths, count)?;
    let stream = load_updates(paths, &routes)?;
    let stream = &stream[..stream.len().min(options.updates)];
    let stem = A::NAME.to_lowercase();
    let title = format!("{}, {origin}", A::NAME);
    let mut sections = vec![measure(&stem, &title, &routes, Some(stream), contenders, options)?];
    if options.random_next_hops {
        let routes = tables::with_random_next_hops(&routes, 5);
        let title = format!("{title}, random next hops");
        sections.push(measure(&format!("{stem}-random"), &title, &routes, None, contenders, options)?);
    }
    Ok(sections)
}

fn run() -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    pin_to(options.processor);
    match options.command {
        Command::Help => {
            println!("{USAGE}");
            Ok(())
        }
        Command::Tables => tables(&options),
        Command::Disturb => {
            let routes = load(&options.v4, options.routes4)?;
            let stream = load_updates(&options.v4, &routes)?;
            disturb::readers::<u32, Rank24>(&routes, &stream);
            disturb::readers::<u32, LeftRight<u32, LcTrie<u32>>>(&routes, &stream);
            let routes = load(&options.v6, options.routes6)?;
            disturb::readers::<u128, Lines6>(&routes, &load_updates(&options.v6, &routes)?);
            Ok(())
        }
        Command::Policy => policy::run(&load(&options.v4, options.routes4)?),
        Command::Worst => {
            disturb::worst();
            Ok(())
        }
    }
}

fn tables(options: &Options) -> Result<(), String> {
    #[cfg(dpdk)]
    if options.dpdk && !dpdk::start() {
        return Err("DPDK's memory could not be set up; --no-dpdk leaves DPDK out".to_owned());
    }
    let mut sections = Vec::new();
    if options.ipv4 {
        sections.extend(family::<u32>(&options.v4, options.routes4, contenders4, options)?);
    }
    if options.ipv6 {
        sections.extend(family::<u128>(&options.v6, options.routes6, contenders6, options)?);
    }
    report::write(&options.output, &sections)
        .map_err(|error| format!("{}: {error}", options.output.display()))?;
    println!("\nresults and plots are in {}", options.output.display());
    Ok(())
}

fn main() {
    if let Err(message) = run() {
        eprintln!("fib-bench: {message}");
        std::process::exit(1);
    }
}

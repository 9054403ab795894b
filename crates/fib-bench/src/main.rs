//! Measures the lookup tables: `make bench-fib`.
//!
//! Needs nothing but the repository: it makes tables with the prefix lengths of the Internet. Real tables and
//! update streams are given by path. With DPDK's development files present at build time its tables take part.
//! All tables are measured in interleaved rounds on one processor and every result is checked against a slow
//! reference, so what counts are ratios inside one run. What can be filled route by route is, and looked up in again after
//! the updates; the default tables take part a second time, loaded in one call. They are looked up in as a worker does,
//! under an announcement for each round of 256 packets, and every library gets its addresses in the form that packets
//! have or its callers make anyway.

#![allow(unsafe_code)] // It calls libraries in C.

mod contender;
mod disturb;
#[cfg(dpdk)]
mod dpdk;
mod environment;
mod goals;
mod library;
mod options;
mod policy;
mod race;
mod random;
mod report;
mod results;
mod tables;

use causeway_fib::baseline::{dir24_8::Dir24_8, lctrie::LcTrie, radix::Radix, ranges::Ranges};
use causeway_fib::rivals::{btree6::BTree6, poptrie::Poptrie};
use causeway_fib::{Compact16, LeftRight, Lines6, Rank24};

use contender::{Contender, Fill, pin_to, shared, still};
use environment::Environment;
use options::{Command, Options, USAGE};
use race::Section;
use tables::{Family, RANDOM, Route, Update};

/// The error is told to whoever runs the bench.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

type Contenders<A> = Vec<Box<dyn Contender<A>>>;
/// Builds all tables of a family from the same routes.
type Build<A> = fn(&[Route<A>], &Options) -> Result<Contenders<A>>;
/// Builds the default tables of a family in one call.
type Load<A> = fn(&[Route<A>]) -> Contenders<A>;

/// All that take routes one after the other do; those that are compiled whole are.
fn contenders4(routes: &[Route<u32>], options: &Options) -> Result<Contenders<u32>> {
    let mut all: Contenders<u32> = vec![
        shared::<u32, Rank24>(routes, Fill::ByRoute),
        shared::<u32, Compact16>(routes, Fill::ByRoute),
        still::<u32, Radix<u32>>(routes, Fill::ByRoute),
        still::<u32, LcTrie<u32>>(routes, Fill::ByRoute),
        still::<u32, Dir24_8>(routes, Fill::ByRoute),
        still::<u32, Poptrie>(routes, Fill::Whole),
        still::<u32, Ranges<u32>>(routes, Fill::Whole),
    ];
    #[cfg(dpdk)]
    if options.dpdk {
        all.extend([1, 2, 4].into_iter().filter_map(|bytes| dpdk::fib(routes, bytes)));
        all.extend(dpdk::lpm(routes));
    }
    all.extend(library(routes, options)?);
    all.extend(loaded4(routes));
    keep(&mut all, options);
    Ok(all)
}

fn loaded4(routes: &[Route<u32>]) -> Contenders<u32> {
    vec![shared::<u32, Rank24>(routes, Fill::Whole), shared::<u32, Compact16>(routes, Fill::Whole)]
}

fn contenders6(routes: &[Route<u128>], options: &Options) -> Result<Contenders<u128>> {
    let mut all: Contenders<u128> = vec![
        shared::<u128, Lines6>(routes, Fill::ByRoute),
        still::<u128, Radix<u128>>(routes, Fill::ByRoute),
        // Route by route it would take hours: a route in a crowded /16 compiles the /16.
        still::<u128, LcTrie<u128>>(routes, Fill::Whole),
        still::<u128, Poptrie>(routes, Fill::Whole),
        still::<u128, BTree6>(routes, Fill::Whole),
        still::<u128, Ranges<u128>>(routes, Fill::Whole),
    ];
    #[cfg(dpdk)]
    if options.dpdk {
        all.extend(dpdk::fib6(routes));
        all.extend(dpdk::lpm6(routes));
    }
    all.extend(library(routes, options)?);
    all.extend(loaded6(routes));
    keep(&mut all, options);
    Ok(all)
}

fn loaded6(routes: &[Route<u128>]) -> Contenders<u128> {
    vec![shared::<u128, Lines6>(routes, Fill::Whole)]
}

/// Poptrie's own library, if it is given.
fn library<A: Family>(routes: &[Route<A>], options: &Options) -> Result<Option<Box<dyn Contender<A>>>> {
    options.poptrie.as_ref().map(|path| library::poptrie(path, routes)).transpose()
}

fn keep<A>(all: &mut Contenders<A>, options: &Options) {
    all.retain(|one| {
        options.only.is_empty() || options.only.iter().any(|name| one.name().contains(name.as_str()))
    });
}

/// One table of routes: lookups, updates, and lookups again when the updates are done.
struct Course<A: Family> {
    stem: String,
    title: String,
    contenders: Build<A>,
    loaded: Load<A>,
}

impl<A: Family> Course<A> {
    fn run(
        &self,
        routes: &[Route<A>],
        stream: Option<&[Update<A>]>,
        options: &Options,
    ) -> Result<Vec<Section>> {
        let traffic = race::traffic(routes, 1 << options.queries_log2, 7);
        let mut all = (self.contenders)(routes, options)?;
        let mut scores = race::lookups(&all, &traffic, routes.len(), options.rounds);
        let mut sections = Vec::new();
        if let Some(stream) = stream {
            race::updates(&mut all, stream, &mut scores);
            let routes = race::after(routes, stream);
            // Beside them what the same routes are when they are loaded.
            all.retain(|one| one.fill() == Fill::ByRoute);
            let updated = all.len();
            all.extend((self.loaded)(&routes));
            keep(&mut all, options);
            let traffic = race::traffic(&routes, 1 << options.queries_log2, 8);
            let mut scores = race::lookups(&all, &traffic, routes.len(), options.rounds);
            scores.iter_mut().take(updated).for_each(|score| score.build_ms = None);
            sections.push(self.section("-updated", ", after the updates", scores));
        }
        sections.insert(0, self.section("", "", scores));
        sections.iter().for_each(report::print);
        Ok(sections)
    }

    fn section(&self, stem: &str, title: &str, scores: Vec<race::Score>) -> Section {
        Section { title: format!("{}{title}", self.title), stem: format!("{}{stem}", self.stem), scores }
    }
}

fn load<A: Family>(paths: &(Option<String>, Option<String>), count: usize) -> Result<Vec<Route<A>>> {
    match &paths.0 {
        Some(path) => tables::read(path),
        None => Ok(tables::synthetic(count, 1)),
    }
}

fn load_updates<A: Family>(
    paths: &(Option<String>, Option<String>),
    routes: &[Route<A>],
) -> Result<Vec<Update<A>>> {
    match &paths.1 {
        Some(path) => tables::read_updates(path, 3),
        None => Ok(tables::synthetic_updates(routes, 400_000, 3)),
    }
}

/// Both next-hop mixes of one family.
fn family<A: Family>(
    paths: &(Option<String>, Option<String>),
    count: usize,
    (contenders, loaded): (Build<A>, Load<A>),
    options: &Options,
) -> Result<Vec<Section>> {
    let origin = if paths.0.is_some() { "table from a file" } else { "synthetic table" };
    let routes = load::<A>(paths, count)?;
    let stream = load_updates(paths, &routes)?;
    let stream = &stream[..stream.len().min(options.updates)];
    let (stem, title) = (A::NAME.to_lowercase(), format!("{}, {origin}", A::NAME));
    let course = Course { stem, title, contenders, loaded };
    let mut sections = course.run(&routes, Some(stream), options)?;
    if options.random_next_hops {
        let routes = tables::with_random_next_hops(&routes, 5);
        let (stem, title) =
            (format!("{}-random", course.stem), format!("{}, {RANDOM} next hops at random", course.title));
        sections.extend(Course { stem, title, ..course }.run(&routes, None, options)?);
    }
    Ok(sections)
}

fn run() -> Result<()> {
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

fn tables(options: &Options) -> Result<()> {
    #[cfg(dpdk)]
    if options.dpdk && !dpdk::start() {
        return Err("DPDK's memory could not be set up; --no-dpdk leaves DPDK out".into());
    }
    let environment = Environment::here(options.dpdk);
    let mut sections = Vec::new();
    if options.ipv4 {
        sections.extend(family::<u32>(&options.v4, options.routes4, (contenders4, loaded4), options)?);
    }
    if options.ipv6 {
        sections.extend(family::<u128>(&options.v6, options.routes6, (contenders6, loaded6), options)?);
    }
    results::write(&options.output, &environment, &sections)
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

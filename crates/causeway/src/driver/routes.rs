//! Routing tables of elements, copied to memory that programs read.

use anyhow::{Context, Result, bail};
use causeway_engine::handler::HandlerError;
use causeway_engine::{NoAnswer, Plan, Router};
use causeway_fastpath::{Hop, Hops, NextHops, Routes, SharedRegion, Table, Trie};
use causeway_fib::{
    Domain, Fib, Lines6, Lines6Layout, Prefix, Prefix4, Prefix6, Rank24, Rank24Layout, Table as _,
};
use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Weak};

/// Routes of a table that is copied, at most: it is copied whole when one changes.
const MOST: usize = 65_536;
const LAYOUT: Rank24Layout = Rank24Layout::new(19);
const LAYOUT6: Lines6Layout = Lines6Layout::new(18);
/// Pairs of output and gateway that a table may lead to.
const HOPS: u32 = 4_096;

/// The copies that there are. Ports whose tables say the same share one: a table of IPv6 takes 65 MB, which stay in memory.
#[derive(Default)]
pub struct Copies(Vec<Weak<Copied>>);

impl Copies {
    /// The copy of the table whose handler `table` says this.
    pub fn of(&mut self, text: &str) -> Result<Arc<Copied>> {
        self.0.retain(|copy| copy.strong_count() > 0);
        let mut there = self.0.iter().filter_map(Weak::upgrade);
        if let Some(copy) = there.find(|copy| copy.text == text) {
            return Ok(copy);
        }
        let copy = Arc::new(Copied::new(text)?);
        self.0.push(Arc::downgrade(&copy));
        Ok(copy)
    }
}

/// A copy of one table. It never changes; another takes its place.
pub struct Copied {
    /// What the handler says.
    text: String,
    memory: Arc<SharedRegion>,
    hops: Hops,
    walk: Walk,
}

/// What has filled the memory, and what its shape is.
enum Walk {
    V4(#[expect(dead_code, reason = "the memory is its")] Box<Fib<u32, Rank24>>),
    V6(#[expect(dead_code, reason = "the memory is its")] Box<Fib<u128, Lines6>>),
}

/// What a table is of, and its routes: prefix, gateway (none if zero) and output.
enum Listed {
    V4(Vec<(Prefix4, u32, u16)>),
    V6(Vec<(Prefix6, u128, u16)>),
}

/// Reads what the handler `table` says; `None` if the driver cannot have that.
fn read(text: &str) -> Option<Listed> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<[&str; 3]> = lines.map(columns).collect::<Option<_>>()?;
    if lines.len() > MOST {
        return None;
    }
    let v6 = text.contains(':');
    Some(match v6 {
        false => Listed::V4(lines.iter().map(route::<u32, Ipv4Addr>).collect::<Option<_>>()?),
        true => Listed::V6(lines.iter().map(route::<u128, Ipv6Addr>).collect::<Option<_>>()?),
    })
}

fn columns(line: &str) -> Option<[&str; 3]> {
    let mut words = line.split_whitespace();
    let columns = [words.next()?, words.next()?, words.next()?];
    words.next().is_none().then_some(columns)
}

fn route<A: From<Ip> + Default, Ip: std::str::FromStr>(
    [prefix, gateway, output]: &[&str; 3],
) -> Option<(Prefix<A>, A, u16)>
where
    Prefix<A>: std::str::FromStr,
{
    let gateway = if *gateway == "-" { A::default() } else { A::from(gateway.parse::<Ip>().ok()?) };
    Some((prefix.parse().ok()?, gateway, output.parse().ok()?))
}

/// What routing tables say of themselves, by element. Each is asked once, and one with too many routes is not written down:
/// whoever changes or reads it waits meanwhile.
#[derive(Default)]
pub struct Texts(BTreeMap<usize, Option<Arc<str>>>);

impl Texts {
    /// What the handler `table` of an element says; `None` if the driver cannot have that.
    ///
    /// # Errors
    /// If its worker does not answer.
    pub fn of(&mut self, router: &Router, plan: &Plan, element: usize) -> Result<Option<Arc<str>>, NoAnswer> {
        if let Some(known) = self.0.get(&element) {
            return Ok(known.clone());
        }
        let ask = |handler| match router.read(&plan.elements[element].name, handler, "") {
            Err(HandlerError::NoAnswer(error)) => Err(error),
            answer => Ok(answer.ok()),
        };
        let length = ask("length")?.and_then(|length| length.parse::<usize>().ok());
        let text = if length.is_some_and(|length| length <= MOST) { ask("table")? } else { None };
        let text: Option<Arc<str>> = text.filter(|text| read(text).is_some()).map(Into::into);
        self.0.insert(element, text.clone());
        Ok(text)
    }
}

impl Copied {
    /// Copies the table whose handler `table` says this.
    fn new(text: &str) -> Result<Copied> {
        let listed = read(text).context("it is too long, or no table of routes")?;
        let mut hops = Hops::new(HOPS)?;
        let region = |bytes| SharedRegion::new(bytes).map(Arc::new);
        let (memory, walk) = match listed {
            Listed::V4(routes) => {
                let memory = region(LAYOUT.bytes())?;
                let structure = Rank24::in_region(LAYOUT, memory.clone(), &Domain::new())?;
                let mut fib = Fib::with_structure(structure);
                fib.load(&numbered(routes, &mut hops, |gateway| [gateway.into(), 0])?)?;
                (memory, Walk::V4(Box::new(fib)))
            }
            Listed::V6(routes) => {
                let memory = region(LAYOUT6.bytes())?;
                let structure = Lines6::in_region(LAYOUT6, memory.clone(), &Domain::new())?;
                let mut fib = Fib::with_structure(structure);
                let halves = |gateway: u128| [(gateway >> 64) as u64, gateway as u64];
                fib.load(&numbered(routes, &mut hops, halves)?)?;
                (memory, Walk::V6(Box::new(fib)))
            }
        };
        Ok(Copied { text: text.to_owned(), memory, hops, walk })
    }

    /// The table, for programs.
    pub fn table(&self) -> Table<'_> {
        let trie = match self.walk {
            Walk::V4(_) => Trie::V4 { memory: &self.memory, layout: LAYOUT },
            Walk::V6(_) => Trie::V6 { memory: &self.memory, layout: LAYOUT6 },
        };
        let next_hops = NextHops { hops: &self.hops, interfaces: None, check: None };
        Table::Routes(Routes { trie, next_hops, group: None })
    }
}

/// The routes with the numbers of their hops, which are set.
fn numbered<A: Copy + Default + Eq + std::hash::Hash>(
    routes: Vec<(Prefix<A>, A, u16)>,
    hops: &mut Hops,
    words: impl Fn(A) -> [u64; 2],
) -> Result<Vec<(Prefix<A>, u32)>> {
    let mut known: HashMap<(A, u16), u32> = HashMap::new();
    for &(_, gateway, output) in &routes {
        // 0 is what is found where there is no route.
        let next = known.len() as u32 + 1;
        if *known.entry((gateway, output)).or_insert(next) == next {
            let [high, low] = words(gateway);
            let hop = Hop { words: [output.into(), high, low], on_link: gateway == A::default(), mark: 0 };
            hops.set(next, Some(hop));
        }
    }
    if known.len() as u32 >= HOPS {
        bail!("its routes lead to too many gateways");
    }
    Ok(routes.into_iter().map(|(prefix, gateway, output)| (prefix, known[&(gateway, output)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{self, Source, Style};
    use causeway_engine::Options;

    #[test]
    fn tables_are_read_as_elements_write_them() {
        let Some(Listed::V4(four)) = read("10.0.0.0/8\t\t-\t\t1\n0.0.0.0/0\t\t10.1.2.3\t0\n") else {
            panic!("no table")
        };
        assert_eq!(four, [("10.0.0.0/8".parse().unwrap(), 0, 1), (Prefix4::DEFAULT, 0x0a01_0203, 0)]);
        let Some(Listed::V6(six)) = read("# Active routes\n2001:db8::/32\t::\t1\n::/0\tfe80::1\t0\n") else {
            panic!("no table")
        };
        assert_eq!(six.iter().map(|route| route.1).collect::<Vec<_>>(), [0, 0xfe80 << 112 | 1]);
        for other in ["10.0.0.1 1 00:11:22:33:44:55 2", "10.0.0.0/8 - -", "10.0.0.0/8 x 1", "10.0.0.0/8"] {
            assert!(read(other).is_none(), "{other}");
        }
    }

    /// So many routes, each to a gateway of its own.
    fn many(n: usize) -> String {
        let line = |i: usize| format!("{}/32 {} 0\n", Ipv4Addr::from(i as u32), Ipv4Addr::from(!(i as u32)));
        (0..n).map(line).collect()
    }

    #[test]
    fn tables_are_asked_once_and_long_ones_not_at_all() {
        let library = causeway_elements::library();
        let text = "i :: Idle -> short :: RadixIPLookup(1.0.0.0/8 0) -> Discard;
            Idle -> long :: RadixIPLookup -> Discard;";
        let source = Source::Text("test", text.to_owned());
        let loaded = load::load(&source, &library, &[], Style::Click).unwrap_or_else(|e| panic!("{e}"));
        let plan = loaded.plan;
        let router = Router::start(library, plan.clone(), Options::default()).unwrap();
        let add = |i: usize| format!("add {}/32 0\n", Ipv4Addr::from(i as u32));
        router.write("long", "ctrl", &(0..=MOST).map(add).collect::<String>()).unwrap();
        let of = |texts: &mut Texts, name| {
            texts.of(&router, &plan, plan.find(name).expect("an element")).expect("an answer")
        };
        let mut texts = Texts::default();
        let first = of(&mut texts, "short").expect("a table");
        assert_eq!(&*first, "1.0.0.0/8\t\t-\t\t0\n");
        router.write("short", "add", "2.0.0.0/8 0").unwrap();
        assert_eq!(of(&mut texts, "short"), Some(first), "as the first port had it");
        assert!(of(&mut Texts::default(), "short").is_some_and(|text| text.contains("2.0.0.0/8")));
        assert_eq!([of(&mut texts, "long"), of(&mut texts, "i")], [None, None]);
        router.write("long", "remove", "0.0.0.0/32").unwrap();
        assert!(of(&mut Texts::default(), "long").is_some(), "as many as are copied");
        router.close().expect("an end");
    }

    #[test]
    fn what_is_too_much_for_a_copy_is_told() {
        assert!(read(&many(MOST)).is_some() && read(&many(MOST + 1)).is_none());
        match Hops::new(HOPS) {
            Err(e) if e.kind() == causeway_bpf::ErrorKind::Privilege => {
                return eprintln!("skipped: needs root: {e}");
            }
            hops => drop(hops.expect("next hops")),
        }
        let most = HOPS as usize - 1;
        assert!(Copied::new(&many(most)).is_ok());
        let why = Copied::new(&many(most + 1)).err().expect("too many");
        assert_eq!(why.to_string(), "its routes lead to too many gateways");
    }

    #[test]
    fn ports_whose_tables_say_the_same_read_one_copy() {
        let (one, other) = ("2001:db8::/32 fe80::1 0\n", "2001:db8::/32 fe80::1 1\n");
        match Hops::new(HOPS) {
            Err(e) if e.kind() == causeway_bpf::ErrorKind::Privilege => {
                return eprintln!("skipped: needs root: {e}");
            }
            hops => drop(hops.expect("next hops")),
        }
        let mut copies = Copies::default();
        let mut of = |text| copies.of(text).expect("a copy");
        let (first, second, third) = (of(one), of(one), of(other));
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &third));
        drop((first, second));
        drop(of(other));
        assert_eq!(copies.0.len(), 1, "what nobody reads is let go");
    }

    #[test]
    fn routes_that_lead_to_the_same_have_one_number_and_none_has_that_of_no_route() {
        let mut hops = match Hops::new(HOPS) {
            Ok(hops) => hops,
            Err(e) if e.kind() == causeway_bpf::ErrorKind::Privilege => {
                return eprintln!("skipped: needs root: {e}");
            }
            Err(e) => panic!("{e}"),
        };
        let prefix = |n: u8| format!("10.{n}.0.0/16").parse::<Prefix4>().expect("a prefix");
        let routes = vec![(prefix(1), 0, 1), (prefix(2), 9, 1), (prefix(3), 0, 1), (prefix(4), 9, 2)];
        let numbered = numbered(routes, &mut hops, |gateway| [gateway.into(), 0]).expect("few");
        assert_eq!(numbered, [1, 2, 3, 4].map(prefix).into_iter().zip([1, 2, 1, 3]).collect::<Vec<_>>());
    }
}

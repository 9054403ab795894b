//! SourceIPHashMapper.

use super::flow_id::FlowId;
use super::input::{Mapper, Reader, Registry, Rewrite};
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_engine::value::Value;
use causeway_lang::args::split_words;

pub(crate) static SPEC: Spec = Spec {
    name: "SourceIPHashMapper",
    category: "nat",
    summary: "lets rewriters choose patterns by source address",
    ports: "0/0",
    phase: phase::DEFAULT - 1,
    doc: "Named as an input's specification of a rewriter, it gives all flows of a source address the same pattern. Each server has \
          NODES points on a ring, placed by its number and SEED, and an address goes to the next point; so when a server comes or \
          goes, most addresses stay where they are. Up to a million points.",
    args: &[
        required("NODES_SEED", "two numbers", "points of each server, and what they are placed by"),
        rest(
            "PATTERN",
            "pattern, outputs and server",
            "a pattern or its name, FOUTPUT and ROUTPUT, as in IPRewriter, and the server's number",
        ),
    ],
    example: "m :: SourceIPHashMapper(5 7, - - 10.0.0.2 - 0 1 1, - - 10.0.0.3 - 0 1 2); \
              Idle -> rw :: IPRewriter(m, pass 1); Idle -> [1]rw; rw[0] -> Discard; rw[1] -> Discard;",
    see: &["IPRewriter", "RoundRobinIPMapper", "IPRewriterPatterns"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

/// Most points of all servers.
const MOST_POINTS: u64 = 1 << 20;

/// The C library's random numbers, an additive feedback generator (`random(3)`), by which Click places the points.
struct Feedback {
    state: [i32; 34],
    at: usize,
}

impl Feedback {
    fn new(seed: i32) -> Feedback {
        let mut state = [0i32; 34];
        state[0] = if seed == 0 { 1 } else { seed };
        for i in 1..31 {
            let word = 16_807 * i64::from(state[i - 1]) % 2_147_483_647;
            state[i] = if word < 0 { word + 2_147_483_647 } else { word } as i32;
        }
        for i in 31..34 {
            state[i] = state[i - 31];
        }
        let mut generator = Feedback { state, at: 0 };
        for _ in 0..310 {
            generator.next();
        }
        generator
    }

    fn next(&mut self) -> i32 {
        // The state is the last 34 numbers, the oldest at `at`.
        let of = |back: usize| self.state[(self.at + 34 - back) % 34];
        let word = of(31).wrapping_add(of(3));
        self.state[self.at] = word;
        self.at = (self.at + 1) % 34;
        (word as u32 >> 1) as i32
    }
}

struct Ring {
    rewrites: Vec<Rewrite>,
    /// Points and the patterns they belong to, in order.
    points: Vec<(i32, usize)>,
    /// Where an address behind the last point goes: the root of Click's balanced tree.
    root: usize,
    declaration: String,
}

impl Mapper for Ring {
    fn rewrites(&self) -> &[Rewrite] {
        &self.rewrites
    }

    fn choose(&self, flow: FlowId) -> usize {
        // Click takes the address as it lies in memory; neighbours shall go to different places.
        let address = flow.source.swap_bytes();
        let mixed = address.wrapping_mul((address & 0xff) << 24 | 1);
        let point = (mixed % i32::MAX as u32) as i32;
        let next = self.points.partition_point(|(p, _)| *p < point);
        self.points.get(next).or(self.points.get(self.root)).map_or(0, |(_, pattern)| *pattern)
    }

    fn tries(&self) -> usize {
        1
    }

    fn declaration(&self) -> &str {
        &self.declaration
    }
}

/// The points of servers with these numbers.
fn points(servers: &[u16], nodes: u32, seed: i32) -> Vec<(i32, usize)> {
    let mut random = Feedback::new(seed);
    let mut points = Vec::new();
    let mut pattern = 0;
    for server in 0..=servers.iter().copied().max().unwrap_or(0) {
        let known = servers.contains(&server);
        for _ in 0..nodes {
            let point = random.next();
            if known {
                points.push((point, pattern));
            }
        }
        pattern += usize::from(known);
    }
    points.sort_by_key(|p| p.0);
    points
}

/// Which of `n` numbers in order is the root of a balanced tree whose last row is filled from the left.
fn root(n: usize) -> usize {
    if n == 0 {
        return 0;
    }
    // All rows but the last are full; the left half of the last is filled first.
    let last_width = 1usize << n.ilog2();
    let last = n - (last_width - 1);
    (last_width / 2).saturating_sub(1) + last.min(last_width / 2)
}

struct SourceIPHashMapper;

impl Element for SourceIPHashMapper {}

fn server(reader: &Reader<'_>, text: &str) -> Result<(Rewrite, u16), Error> {
    let words = split_words(text);
    let number = words.split_last().filter(|(_, rest)| !rest.is_empty());
    let number = number.and_then(|(n, rest)| Some((u16::parse(n, &reader.scope).ok()?, rest)));
    let (number, rest) = number.ok_or("bad server ID in pattern spec")?;
    Ok((reader.rewrite(rest, false)?, number))
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let registry = Registry::of(conf);
    let element = conf.name().clone();
    let texts = conf.rest();
    let (first, texts) = match texts.split_first() {
        None => {
            conf.error("no hash seed given");
            return Err(Invalid);
        }
        Some((_, [])) => {
            conf.error("no patterns given");
            return Err(Invalid);
        }
        Some(split) => split,
    };
    if texts.len() == 1 {
        conf.warn("only one pattern given");
    }
    let words = split_words(first);
    let [nodes, seed] = &words[..] else {
        conf.error("requires 2 config params: numnodes seed");
        return Err(Invalid);
    };
    let nodes = u32::parse(nodes, &conf.scope()).ok().filter(|n| *n > 0);
    let seed = i32::parse(seed, &conf.scope()).ok();
    let (Some(nodes), Some(seed)) = (nodes, seed) else {
        let what = if nodes.is_none() { "number of nodes" } else { "hash seed" };
        conf.error(format!("{what} must be an integer"));
        return Err(Invalid);
    };
    let (mut rewrites, mut servers) = (Vec::new(), Vec::new());
    for text in texts {
        let reader =
            Reader { registry: &registry, element: &element, scope: conf.scope(), outputs: usize::MAX };
        match server(&reader, text) {
            Ok((rewrite, number)) => {
                rewrites.push(rewrite);
                servers.push(number);
            }
            Err(why) => conf.error(why),
        }
    }
    let most = u64::from(servers.iter().copied().max().unwrap_or(0)) + 1;
    if most * u64::from(nodes) > MOST_POINTS {
        conf.error(format!("more than {MOST_POINTS} points"));
    }
    conf.finish()?;
    let points = points(&servers, nodes, seed);
    let root = root(points.len());
    let declaration = format!("{element} :: {}", SPEC.name);
    registry.add_mapper(&element, Ring { rewrites, points, root, declaration });
    Ok(Box::new(SourceIPHashMapper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_those_of_the_c_library() {
        // The first numbers of `srandom(1)`, as its documentation's examples print them.
        let mut one = Feedback::new(1);
        assert_eq!([one.next(), one.next(), one.next()], [1_804_289_383, 846_930_886, 1_681_692_777]);
    }

    #[test]
    fn a_server_that_goes_moves_only_its_own_addresses() {
        let ring = |servers: &[u16]| Ring {
            rewrites: Vec::new(),
            points: points(servers, 20, 7),
            root: 0,
            declaration: String::new(),
        };
        let (three, two) = (ring(&[1, 2, 3]), ring(&[1, 3]));
        let mut moved = 0;
        for source in 0..1_000u32 {
            let flow = FlowId::new(0x0a00_0000 + source * 77, 0, 0, 0);
            match (three.choose(flow), two.choose(flow)) {
                (1, _) => moved += 1,
                (before, after) => assert_eq!(before, 2 * after),
            }
        }
        assert!((150..600).contains(&moved), "{moved}");
    }

    #[test]
    fn the_root_is_where_a_balanced_tree_has_it() {
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(root), [0, 1, 1, 2, 3, 3, 3, 4]);
    }
}

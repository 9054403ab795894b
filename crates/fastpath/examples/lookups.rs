//! What a route lookup costs in a BPF program: the memory of `fib`'s table in an array map, the kernel's trie map, and
//! `bpf_fib_lookup` on the kernel's own routes.
//!
//! ```text
//! cargo run -p causeway-fastpath --example lookups -- ROUTES
//! ```
//!
//! `ROUTES` is a text with a prefix and the number of a next hop (1 to 64) in each line. The program needs root and runs
//! itself again in a network namespace without a name, into which it puts the routes. Destinations are random addresses
//! inside random prefixes. All are measured in turn, many times, each time a thousand runs of sixteen lookups.

use causeway_bpf::{
    Alu, Asm, Cond, Helper, Map, MapKind, MappedArray, Program, ProgramKind, Reg, Size, action,
};
use causeway_fastpath::{SharedRegion, rank24};
use causeway_fib::{Domain, Fib, Lookup, Prefix4, Rank24, Rank24Layout, Table};
use std::error::Error;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Lookups in a run of a program.
const EACH: usize = 16;
/// Runs in a measurement, and measurements of each contender.
const RUNS: u32 = 1_000;
const ROUNDS: usize = 301;
/// Destinations, a power of two.
const DESTINATIONS: usize = 1 << 20;
/// The interface of the kernel's routes, with an address for each next hop.
const DEVICE: &str = "lookups0";

type Any<T> = Result<T, Box<dyn Error>>;
type Route = (Prefix4, u32);

fn main() -> Any<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("--inside"), Some(path)) => inside(&path),
        (Some(path), None) => {
            let this = std::env::current_exe()?;
            let status = Command::new("unshare").arg("-n").arg(this).args(["--inside", path]).status()?;
            if status.success() { Ok(()) } else { Err("the measurement failed".into()) }
        }
        _ => Err("usage: lookups ROUTES".into()),
    }
}

fn inside(path: &str) -> Any<()> {
    let routes = read(&std::fs::read_to_string(path)?)?;
    let rng = &mut fastrand::Rng::with_seed(1);
    let layout = Rank24Layout::new(22);
    let memory = Arc::new(SharedRegion::new(layout.bytes())?);
    let mut fib = Fib::with_structure(Rank24::in_region(layout, memory.clone(), &Domain::new())?);
    fib.load(&routes)?;
    let trie = Map::new(MapKind::LpmTrie, "trie", 8, 4, routes.len() as u32)?;
    for (prefix, hop) in &routes {
        let length = u32::from(prefix.len()).to_ne_bytes();
        let key = [length, prefix.first().to_be_bytes()].concat();
        trie.insert(&key, &hop.to_ne_bytes())?;
    }
    let device = fill_kernel(&routes)?;
    let mut work = Work::new(&routes, rng)?;
    let contenders: [(&str, Program); 4] = [
        ("no lookup", work.program(|_, _| ())?),
        ("rank24 in an array map", work.program(|asm, _| rank24(asm, &memory, &layout))?),
        ("trie map", work.program(|asm, key| in_trie(asm, &trie, key))?),
        ("bpf_fib_lookup", work.program(|asm, key| fib_lookup(asm, key, device))?),
    ];
    work.check(&contenders, &fib)?;
    println!("{} routes, {} bytes of memory for rank24; load {}", routes.len(), layout.bytes(), load());
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for ((_, program), times) in contenders.iter().zip(&mut times) {
            let took = program.test_run(&[0; 64], None, RUNS)?.duration_ns;
            times.push(f64::from(took) / EACH as f64);
        }
    }
    println!("load {} at the end; ns a lookup, without what a run without lookups takes", load());
    println!("{:24} {:>8} {:>8} {:>8}", "", "median", "tenth", "least");
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let at = |n: usize, part: usize| times[n][part] - if n == 0 { 0.0 } else { times[0][part] };
    for (n, (name, _)) in contenders.iter().enumerate() {
        println!("{name:24} {:8.1} {:8.1} {:8.1}", at(n, ROUNDS / 2), at(n, ROUNDS / 10), at(n, 0));
    }
    Ok(())
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or("?").to_owned()
}

fn read(text: &str) -> Any<Vec<Route>> {
    let mut routes = Vec::new();
    for line in text.lines() {
        let (prefix, hop) = line.split_once(' ').ok_or("a line without next hop")?;
        routes.push((prefix.parse()?, hop.trim().parse()?));
    }
    Ok(routes)
}

/// Puts the routes into the namespace's main table; gives the interface's index.
fn fill_kernel(routes: &[Route]) -> Any<u32> {
    let mut script = format!(
        "link add {DEVICE} type veth peer name lookups1\nlink set {DEVICE} up\nlink set lookups1 up\n\
         link set lo up\naddress add 10.255.0.100/24 dev {DEVICE}\n"
    );
    for hop in 1..=64 {
        script += &format!(
            "neighbour replace 10.255.0.{hop} lladdr 2:0:0:0:0:{hop:x} dev {DEVICE} nud permanent\n"
        );
    }
    for (prefix, hop) in routes {
        script += &format!("route replace {prefix} via 10.255.0.{hop} dev {DEVICE}\n");
    }
    let mut ip = Command::new("ip").args(["-force", "-batch", "-"]).stdin(Stdio::piped()).spawn()?;
    ip.stdin.take().ok_or("no pipe")?.write_all(script.as_bytes())?;
    if !ip.wait()?.success() {
        return Err("not all routes went in".into());
    }
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    let text = Command::new("ip").args(["-o", "link", "show", DEVICE]).output()?.stdout;
    let text = String::from_utf8(text)?;
    Ok(text.split(':').next().ok_or("no interface")?.trim().parse()?)
}

/// What programs read and write: where in the destinations they are, a sum of what they found, and the destinations.
struct Work {
    array: MappedArray,
    addresses: Vec<u32>,
}

/// Offsets in the array's value.
const PLACE: i32 = 0;
const SUM: i32 = 8;
const FIRST: i32 = 64;

impl Work {
    fn new(routes: &[Route], rng: &mut fastrand::Rng) -> Any<Work> {
        let mut array = MappedArray::new("work", FIRST as usize + 4 * DESTINATIONS, 1)?;
        let addresses: Vec<u32> = (0..DESTINATIONS)
            .map(|_| {
                let prefix = routes[rng.usize(..routes.len())].0;
                rng.u32(prefix.first()..=prefix.last())
            })
            .collect();
        let bytes = &mut array.bytes_mut()[FIRST as usize..];
        for (bytes, address) in bytes.chunks_exact_mut(4).zip(&addresses) {
            bytes.copy_from_slice(&address.to_ne_bytes());
        }
        Ok(Work { array, addresses })
    }

    /// A program that looks up as `look_up` writes it: the address is in R0, what is found goes to R2.
    fn program(&self, look_up: impl Fn(&mut Asm, causeway_bpf::Slot)) -> Any<Program> {
        let mut asm = Asm::new();
        let map = self.array.map().as_fd();
        let key = asm.slot(64);
        asm.mov(Reg::R6, Reg::R1);
        asm.map_value(Reg::R7, map, 0);
        asm.load(Size::D, Reg::R8, Reg::R7, PLACE as i16);
        asm.mov(Reg::R9, 0);
        for _ in 0..EACH {
            asm.alu(Alu::And, Reg::R8, DESTINATIONS as i32 - 1);
            asm.mov(Reg::R1, Reg::R8);
            asm.alu(Alu::Lsh, Reg::R1, 2);
            asm.map_value(Reg::R0, map, FIRST);
            asm.alu(Alu::Add, Reg::R0, Reg::R1);
            asm.load(Size::W, Reg::R0, Reg::R0, 0);
            asm.mov(Reg::R2, Reg::R0);
            look_up(&mut asm, key);
            asm.alu(Alu::Add, Reg::R9, Reg::R2);
            asm.alu(Alu::Add, Reg::R8, 1);
        }
        asm.store(Size::D, Reg::R7, PLACE as i16, Reg::R8);
        asm.load(Size::D, Reg::R1, Reg::R7, SUM as i16);
        asm.alu(Alu::Add, Reg::R1, Reg::R9);
        asm.store(Size::D, Reg::R7, SUM as i16, Reg::R1);
        asm.mov(Reg::R0, action::XDP_PASS);
        asm.exit();
        Ok(Program::load(ProgramKind::Xdp, "lookups", &asm.finish()?)?)
    }

    /// Whether the contenders find what the table says, over all destinations.
    fn check(&mut self, contenders: &[(&str, Program)], fib: &impl Lookup<u32>) -> Any<()> {
        let expected: u64 = self.addresses.iter().map(|&address| u64::from(fib.lookup(address))).sum();
        for (name, program) in &contenders[1..] {
            self.array.bytes_mut()[..16].fill(0);
            program.test_run(&[0; 64], None, (DESTINATIONS / EACH) as u32)?;
            let bytes = &self.array.bytes_mut()[SUM as usize..][..8];
            let found = u64::from_ne_bytes(bytes.try_into()?);
            if found != expected {
                return Err(format!("{name} finds a sum of {found} and not {expected}").into());
            }
        }
        Ok(())
    }
}

fn in_trie(asm: &mut Asm, trie: &Map, key: causeway_bpf::Slot) {
    let missing = asm.label();
    asm.to_be(Reg::R0, 32);
    asm.store_slot(Size::W, key, 0, 32);
    asm.store_slot(Size::W, key, 4, Reg::R0);
    asm.map(Reg::R1, trie.as_fd());
    asm.slot_address(Reg::R2, key);
    asm.call(Helper::MapLookup);
    asm.mov(Reg::R2, 0);
    asm.jump_if(Cond::Eq, Reg::R0, 0, missing);
    asm.load(Size::W, Reg::R2, Reg::R0, 0);
    asm.bind(missing);
}

/// The next hop's number is the last byte of its link-layer address.
fn fib_lookup(asm: &mut Asm, parameters: causeway_bpf::Slot, device: u32) {
    const LENGTH: i32 = 64;
    let missing = asm.label();
    asm.to_be(Reg::R0, 32);
    for word in 0..8 {
        asm.store_slot(Size::D, parameters, 8 * word, 0);
    }
    // Family, length, interface, source and destination of `struct bpf_fib_lookup`.
    asm.store_slot(Size::B, parameters, 0, 2);
    asm.store_slot(Size::H, parameters, 6, 60);
    asm.store_slot(Size::W, parameters, 8, device as i32);
    asm.store_slot(Size::W, parameters, 16, i32::from_ne_bytes([10, 255, 0, 99]));
    asm.store_slot(Size::W, parameters, 32, Reg::R0);
    asm.mov(Reg::R1, Reg::R6);
    asm.slot_address(Reg::R2, parameters);
    asm.mov(Reg::R3, LENGTH);
    asm.mov(Reg::R4, 0);
    asm.call(Helper::FibLookup);
    asm.mov(Reg::R2, 0);
    asm.jump_if(Cond::Ne, Reg::R0, 0, missing);
    asm.load_slot(Size::B, Reg::R2, parameters, 63);
    asm.bind(missing);
}

//! Functions by address, and what they are for.

use std::fmt;

/// What processor time goes to: the classes of LUT §4, and those that a router in user space adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Nothing to do.
    Idle,
    /// Choosing and changing threads, clocks, locks.
    Scheduler,
    /// Making and freeing buffers, copying.
    Memory,
    /// IP: checks, lookup, forwarding, filters.
    Ip,
    /// Reception: polling of devices.
    Reception,
    /// Transmission: queues and devices.
    Transmission,
    /// The detour of the papers' experiments, which is a lookup in a linear table: none of theirs.
    Detour,
    /// Interrupts, soft and hard.
    Interrupts,
    /// Ethernet headers.
    Ethernet,
    /// The profiler itself.
    Profiler,
    /// The rest of the kernel: system calls, sockets.
    Kernel,
    /// What else the device does in user space; all that it does, if it is none of Causeway's.
    Device,
    /// The tester, in user space.
    Tester,
    /// Other programs.
    Others,
}

impl Class {
    /// All.
    pub const ALL: [Class; 14] = [
        Class::Idle,
        Class::Scheduler,
        Class::Memory,
        Class::Ip,
        Class::Reception,
        Class::Transmission,
        Class::Detour,
        Class::Interrupts,
        Class::Ethernet,
        Class::Profiler,
        Class::Kernel,
        Class::Device,
        Class::Tester,
        Class::Others,
    ];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Idle => "idle",
            Class::Scheduler => "scheduler",
            Class::Memory => "memory",
            Class::Ip => "IP",
            Class::Reception => "reception",
            Class::Transmission => "transmission",
            Class::Detour => "detour",
            Class::Interrupts => "interrupts",
            Class::Ethernet => "Ethernet",
            Class::Profiler => "profiler",
            Class::Kernel => "rest of the kernel",
            Class::Device => "device, in user space",
            Class::Tester => "tester, in user space",
            Class::Others => "other programs",
        })
    }
}

/// What a function's name has in it, and what it is for: the first that fits counts.
const KNOWN: &[(&str, Class)] = &[
    ("perf_", Class::Profiler),
    ("bpf_prog_", Class::Reception),
    ("trace_", Class::Profiler),
    ("_halt", Class::Idle),
    ("cpu_idle", Class::Idle),
    ("default_idle", Class::Idle),
    ("mwait", Class::Idle),
    ("cpuidle", Class::Idle),
    ("intel_idle", Class::Idle),
    ("do_idle", Class::Idle),
    ("eth_", Class::Ethernet),
    ("neigh_", Class::Ethernet),
    ("arp_", Class::Ethernet),
    ("dev_hard_start_xmit", Class::Transmission),
    ("qdisc", Class::Transmission),
    ("__qdisc", Class::Transmission),
    ("sch_direct_xmit", Class::Transmission),
    ("_xmit", Class::Transmission),
    ("validate_xmit", Class::Transmission),
    ("netif_skb_features", Class::Transmission),
    ("dev_queue", Class::Transmission),
    ("napi_", Class::Reception),
    ("_poll", Class::Reception),
    ("net_rx_action", Class::Reception),
    ("netif_receive", Class::Reception),
    ("gro_", Class::Reception),
    ("xsk_", Class::Reception),
    ("xdp", Class::Reception),
    ("tpacket", Class::Reception),
    ("packet_rcv", Class::Reception),
    ("backlog", Class::Reception),
    ("veth", Class::Reception),
    ("ip_", Class::Ip),
    ("ip6_", Class::Ip),
    ("ipv6_", Class::Ip),
    ("ipv4_", Class::Ip),
    ("fib_", Class::Ip),
    ("fib6_", Class::Ip),
    ("rt6_", Class::Ip),
    ("nf_", Class::Ip),
    ("nft_", Class::Ip),
    ("inet", Class::Ip),
    ("udp", Class::Ip),
    ("skb", Class::Memory),
    ("kmem_", Class::Memory),
    ("kmalloc", Class::Memory),
    ("kfree", Class::Memory),
    ("memcpy", Class::Memory),
    ("memset", Class::Memory),
    ("page", Class::Memory),
    ("slab", Class::Memory),
    ("__slab", Class::Memory),
    ("_copy_", Class::Memory),
    ("copy_user", Class::Memory),
    ("rep_movs", Class::Memory),
    ("sched", Class::Scheduler),
    ("_switch", Class::Scheduler),
    ("switch_", Class::Scheduler),
    ("wake", Class::Scheduler),
    ("pick_", Class::Scheduler),
    ("enqueue", Class::Scheduler),
    ("dequeue", Class::Scheduler),
    ("spin", Class::Scheduler),
    ("mutex", Class::Scheduler),
    ("futex", Class::Scheduler),
    ("hrtimer", Class::Scheduler),
    ("ktime", Class::Scheduler),
    ("rcu", Class::Scheduler),
    ("softirq", Class::Interrupts),
    ("irq", Class::Interrupts),
    ("sysvec", Class::Interrupts),
    ("apic", Class::Interrupts),
    ("interrupt", Class::Interrupts),
];

/// What a function of the kernel is for, by its name.
pub fn class(function: &str) -> Class {
    let known = |(part, _): &&(&str, Class)| {
        // At the beginning of a word, or anywhere if that is what the part begins with.
        let begins = |at: usize| part.starts_with('_') || at == 0 || function.as_bytes()[at - 1] == b'_';
        function.match_indices(part).any(|(at, _)| begins(at))
    };
    KNOWN.iter().find(known).map_or(Class::Kernel, |&(_, class)| class)
}

/// Whether a function of the C library moves bytes.
pub fn copies(function: &str) -> bool {
    ["memcpy", "memmove", "memset"].iter().any(|part| function.contains(part))
}

/// The kernel's functions by address.
#[derive(Debug, Default)]
pub struct Symbols(Vec<(u64, Box<str>)>);

impl Symbols {
    /// Of the text of /proc/kallsyms.
    pub fn parse(text: &str) -> Symbols {
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
            let address = u64::from_str_radix(address, 16).ok().filter(|&address| address > 0)?;
            "tTwW".contains(kind).then(|| (address, name.into()))
        };
        let mut all: Vec<(u64, Box<str>)> = text.lines().filter_map(symbol).collect();
        all.sort_by_key(|&(address, _)| address);
        Symbols(all)
    }

    /// Whether there are none: who may not know them sees zeros.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the code at an address is for; `None` of user space.
    pub fn find(&self, address: u64) -> Option<Class> {
        if address < 1 << 63 {
            return None;
        }
        let after = self.0.partition_point(|&(start, _)| start <= address);
        Some(after.checked_sub(1).map_or(Class::Kernel, |at| class(&self.0[at].1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_classes() {
        for (name, told) in [
            ("pv_native_safe_halt", Class::Idle),
            ("ip_forward", Class::Ip),
            ("fib_table_lookup", Class::Ip),
            ("__dev_queue_xmit", Class::Transmission),
            ("veth_xmit", Class::Transmission),
            ("veth_poll", Class::Reception),
            ("napi_gro_receive", Class::Reception),
            ("__alloc_skb", Class::Memory),
            ("kmem_cache_free", Class::Memory),
            ("eth_type_trans", Class::Ethernet),
            ("__schedule", Class::Scheduler),
            ("handle_softirqs", Class::Interrupts),
            ("perf_swevent_hrtimer", Class::Profiler),
            ("do_syscall_64", Class::Kernel),
        ] {
            assert_eq!(class(name), told, "{name}");
        }
    }

    #[test]
    fn an_address_is_of_the_function_that_begins_before_it() {
        let text =
            "ffffffff81000100 T ip_rcv\nffffffff81000000 t do_idle\nffffffff81000200 D data\n0 T none\nx\n";
        let symbols = Symbols::parse(text);
        let find = |address| symbols.find(address);
        assert_eq!(find(0xffff_ffff_8100_0000), Some(Class::Idle));
        assert_eq!(find(0xffff_ffff_8100_00ff), Some(Class::Idle));
        assert_eq!(find(0xffff_ffff_8100_0300), Some(Class::Ip));
        assert_eq!((find(0xffff_ffff_0000_0000), find(0x40_0000)), (Some(Class::Kernel), None));
        assert!(Symbols::parse("0 T a\n0 t b\n").is_empty());
    }
}

//! Network namespaces for the tests: a router with two ports, and the machine at the other ends.
#![allow(dead_code)] // Each test file uses its own part.

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use causeway_kernel::{Action, Hop, ReversePath, Snapshot, Watcher, WatcherConfig, interfaces};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace of our own, removed with all that is in it.
pub struct Namespace(String);

impl Namespace {
    /// None, with a message, where namespaces cannot be made.
    pub fn new(tag: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root to make network namespaces");
            return None;
        }
        let name = format!("kern-{tag}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let made = Command::new("ip").args(["netns", "add", &name]).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: needs `ip netns` (iproute2) and the right to use it");
            return None;
        }
        let namespace = Namespace(name);
        namespace.ip("link set lo up");
        Some(namespace)
    }

    /// Its name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Runs nft commands inside.
    pub fn nft(&self, commands: &str) {
        let output = Command::new("ip").args(["netns", "exec", &self.0, "nft", commands]).output().unwrap();
        assert!(output.status.success(), "nft {commands}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs `ip ARGS` inside.
    pub fn ip(&self, args: &str) {
        let output = Command::new("ip").args(["-n", &self.0]).args(args.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "ip {args}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// What `ip ARGS` prints inside.
    pub fn show(&self, args: &str) -> String {
        self.try_show(args).unwrap_or_else(|| panic!("ip {args}"))
    }

    /// What `ip ARGS` prints inside; none if it fails.
    pub fn try_show(&self, args: &str) -> Option<String> {
        let output = Command::new("ip").args(["-n", &self.0]).args(args.split_whitespace()).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Sets a value under /proc/sys/net.
    pub fn sysctl(&self, setting: &str) {
        assert!(self.run(&format!("sysctl -qw net.{setting}")), "{setting}");
    }

    /// Runs many `ip` commands inside, one a line; those that fail are skipped.
    pub fn batch(&self, lines: &str) {
        let mut child = Command::new("ip")
            .args(["-n", &self.0, "-force", "-batch", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        child.wait().unwrap();
    }

    /// What `ip FAMILY` answers to many commands, one a line.
    pub fn ask(&self, family: &str, lines: &str) -> String {
        let mut child = Command::new("ip")
            .args(["-n", &self.0, family, "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let lines = lines.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success(), "{lines:?}", lines = output);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command inside and says whether it succeeded.
    pub fn run(&self, command: &str) -> bool {
        let status =
            Command::new("ip").args(["netns", "exec", &self.0]).args(command.split_whitespace()).status();
        status.is_ok_and(|status| status.success())
    }

    /// Runs `f` on a thread that is inside.
    pub fn enter<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.lend((), |()| f())
    }

    /// Runs `f` on a thread that is inside, with something that only one thread may have at a time.
    pub fn lend<T: Send, R: Send>(&self, value: T, f: impl FnOnce(T) -> R + Send) -> R {
        let file = File::open(format!("/run/netns/{}", self.0)).unwrap();
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                f(value)
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// MAC address of the other machine's end of the first link; the second ends in 2.
pub const HOST0_MAC: [u8; 6] = [2, 0, 0, 0, 1, 1];
pub const HOST1_MAC: [u8; 6] = [2, 0, 0, 0, 1, 2];

/// A router with ports `r0` (10.0.0.1/24, 2001:db8:0::1/64) and `r1` (10.0.1.1/24, 2001:db8:1::1/64), and a machine with `h0`
/// and `h1` (the same networks, host 2) at the other ends.
pub struct Testbed {
    pub router: Namespace,
    pub hosts: Namespace,
}

impl Testbed {
    pub fn new(tag: &str) -> Option<Self> {
        Self::with_ports(tag, 2)
    }

    /// The same with more ports: `r2` (10.0.2.1/24, 2001:db8:2::1/64) and `h2`, and so on.
    pub fn with_ports(tag: &str, ports: usize) -> Option<Self> {
        let (router, hosts) = (Namespace::new(tag)?, Namespace::new(tag)?);
        hosts.run("sysctl -qw net.ipv6.conf.all.keep_addr_on_down=1");
        // Link-local addresses at once, so that no test sees them come.
        for namespace in [&router, &hosts] {
            namespace.run("sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0");
        }
        for i in 0..ports {
            let (r, h) = (&router.0, &hosts.0);
            router.ip(&format!(
                "link add r{i} netns {r} type veth peer name h{i} netns {h} address 02:00:00:00:01:0{}",
                i + 1
            ));
            router.ip(&format!("addr add 10.0.{i}.1/24 dev r{i}"));
            router.ip(&format!("addr add 2001:db8:{i}::1/64 dev r{i} nodad"));
            hosts.ip(&format!("addr add 10.0.{i}.2/24 dev h{i}"));
            hosts.ip(&format!("addr add 2001:db8:{i}::2/64 dev h{i} nodad"));
            hosts.ip(&format!("link set h{i} up"));
            router.ip(&format!("link set r{i} up"));
        }
        Some(Testbed { router, hosts })
    }

    /// Opens a watcher of the router's that holds these ports, and takes in its first changes.
    pub fn follow(&self, ports: &[&str]) -> Follower {
        let mut follower = self.open(ports);
        follower.step();
        follower
    }

    /// As [`Testbed::follow`]; the kernel is not asked to keep neighbours resolved.
    pub fn follow_without_keeping(&self, ports: &[&str]) -> Follower {
        let mut follower = self.open_with(ports, |config| WatcherConfig { keep_resolved: false, ..config });
        follower.step();
        follower
    }

    /// Opens a watcher of the router's that holds these ports.
    pub fn open(&self, ports: &[&str]) -> Follower {
        self.open_with(ports, |config| config)
    }

    /// Opens a watcher with other settings.
    pub fn open_with(
        &self,
        ports: &[&str],
        change: impl FnOnce(WatcherConfig) -> WatcherConfig + Send,
    ) -> Follower {
        let watcher = self.router.enter(|| {
            let all = interfaces().unwrap();
            let index = |name: &&str| all.iter().find(|i| i.link.name == *name).unwrap().link.index;
            Watcher::open(change(WatcherConfig::new(ports.iter().map(index)))).unwrap()
        });
        Follower { watcher, seen: Snapshot::default(), route_changes: 0 }
    }
}

/// A watcher and what its changes add up to.
pub struct Follower {
    pub watcher: Watcher,
    pub seen: Snapshot,
    /// Prefixes, other than single hosts, that were told to have changed.
    pub route_changes: usize,
}

impl Follower {
    /// Takes in one set of changes.
    pub fn step(&mut self) {
        let changes = self.watcher.wait(Duration::from_millis(200)).unwrap();
        self.route_changes += changes.routes.iter().filter(|(prefix, _)| !prefix.is_host()).count();
        self.seen.apply(&changes);
    }

    /// Follows until `condition` holds; panics after some seconds.
    pub fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        self.until_with(what, |_| {}, condition);
    }

    /// As [`Follower::until`], doing something again and again meanwhile.
    pub fn until_with(&mut self, what: &str, again: impl Fn(&mut Self), condition: impl Fn(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !condition(self) {
            again(self);
            assert!(Instant::now() < end, "never: {what}\n{}", self.text().join("\n"));
            self.step();
        }
    }

    /// Follows until nothing has changed for a while and nothing is in doubt.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 3 {
            let before = self.watcher.stats();
            self.step();
            quiet = if before == self.watcher.stats() && !self.watcher.in_doubt() { quiet + 1 } else { 0 };
        }
        assert_eq!(self.seen, self.watcher.mirror().snapshot(), "changes do not add up to the snapshot");
    }

    /// What becomes of packets to `address`: see [`describe`].
    pub fn to(&self, address: &str) -> String {
        let address: IpAddr = address.parse().unwrap();
        self.seen.lookup(address).map_or("none".into(), |hop| describe(&self.seen, hop))
    }

    /// What a check of the source `address` finds: see [`describe_reverse`].
    pub fn from(&self, address: &str) -> String {
        let address: IpAddr = address.parse().unwrap();
        self.seen.lookup(address).map_or("none".into(), |hop| describe_reverse(&self.seen, hop))
    }

    /// One line a prefix, without numbers that differ from watcher to watcher.
    pub fn text(&self) -> Vec<String> {
        let line = |(prefix, hop): (&causeway_kernel::Prefix, &causeway_kernel::HopId)| {
            let hop = &self.seen.hops[hop];
            format!("{prefix} {} from {}", describe(&self.seen, hop), describe_reverse(&self.seen, hop))
        };
        self.seen.routes.iter().map(line).collect()
    }
}

/// Both must come to the same; neighbours may still come and go for some time.
pub fn assert_same(a: &mut Follower, b: &mut Follower) {
    for _ in 0..8 {
        a.settle();
        b.settle();
        if a.text() == b.text() {
            return;
        }
    }
    assert_eq!(a.text(), b.text());
}

/// `punt REASON`, or the legs as `INTERFACE via ADDRESS weight N [unresolved|MAC]`.
pub fn describe(snapshot: &Snapshot, hop: &Hop) -> String {
    match &hop.action {
        Action::Punt(reason) => format!("punt {reason}"),
        Action::Forward { legs, mtu_bytes } => {
            let legs = legs.iter().map(|leg| {
                let adjacency = &snapshot.adjacencies[&leg.adjacency];
                let name = &snapshot.links[&adjacency.ifindex].name;
                let rewrite = match adjacency.rewrite {
                    Some(rewrite) => format!("{:02x?}", rewrite.destination),
                    None => "unresolved".into(),
                };
                format!("{name} via {} weight {} {rewrite}", adjacency.address, leg.weight)
            });
            let mtu = mtu_bytes.map_or(String::new(), |mtu| format!("mtu {mtu} "));
            format!("{mtu}{}", legs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// `not unicast`, `unknown`, or the interfaces by name.
pub fn describe_reverse(snapshot: &Snapshot, hop: &Hop) -> String {
    match &hop.reverse_path {
        ReversePath::NotUnicast => "not unicast".into(),
        ReversePath::Unknown => "unknown".into(),
        ReversePath::Ruled => "ruled".into(),
        ReversePath::Interfaces(interfaces) => {
            let names: Vec<&str> = interfaces.iter().map(|i| snapshot.links[i].name.as_str()).collect();
            names.join(", ")
        }
    }
}

/// A leg as [`describe`] writes it.
pub fn leg(interface: &str, via: &str, weight: u16, mac: [u8; 6]) -> String {
    format!("{interface} via {via} weight {weight} {mac:02x?}")
}

/// Makes a group of next hop objects replace another, in the network namespace of the calling thread; whether the kernel took
/// it. `ip nexthop` of some age knows no weight above 256.
pub fn wide_group(id: u32, members: &[(u32, u32)]) -> bool {
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
    };
    const RTM_NEWNEXTHOP: u16 = 104;
    /// Request, acknowledge, replace, create.
    const FLAGS: u16 = 0x1 | 0x4 | 0x100 | 0x400;
    let attribute = |kind: u16, value: &[u8]| {
        let head = [(value.len() as u16 + 4).to_ne_bytes(), kind.to_ne_bytes()].concat();
        [&head[..], value].concat()
    };
    let member = |&(id, weight): &(u32, u32)| {
        let [low, high, ..] = (weight - 1).to_le_bytes();
        [&id.to_ne_bytes()[..], &[low, high, 0, 0]].concat()
    };
    let members: Vec<u8> = members.iter().flat_map(member).collect();
    let body = [vec![0; 8], attribute(1, &id.to_ne_bytes()), attribute(2, &members)].concat();
    let len = (body.len() as u32 + 16).to_ne_bytes();
    let kind = [RTM_NEWNEXTHOP.to_ne_bytes(), FLAGS.to_ne_bytes()].concat();
    let message = [&len[..], &kind, &[0; 8], &body].concat();
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None).unwrap();
    send(&socket, &message, SendFlags::empty()).unwrap();
    let mut answer = [0; 512];
    recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
    // The error number behind the header.
    answer[16..20] == [0; 4]
}

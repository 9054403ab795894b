//! Elements of IP packets.

use super::Kind::{Any, Ip4, Ip6};
use super::Maker;

const PACKETS: [&str; 22] = [
    "udp",
    "tcp",
    "icmp",
    "src net 10.1.0.0/16",
    "dst net 10.64.0.0/14",
    "udp port 53",
    "dst port 80",
    "ip frag",
    "ip unfrag",
    "ip ttl < 20",
    "tcp opt syn",
    "ip tos 0",
    "ip proto 47",
    "src host 10.1.0.9 or dst host 10.64.0.1",
    "dst port >= 4000",
    "ip hl > 5",
    "not (udp or tcp)",
    "src or dst net 10.1.1.0/24",
    "ip[8:1] & 1 == 1",
    "dst net 10.65.0.0/16 && udp",
    "icmp type 8",
    "ip len > 100",
];
const TABLES: [&str; 6] = [
    "RadixIPLookup",
    "StaticIPLookup",
    "LinearIPLookup",
    "DirectIPLookup",
    "RangeIPLookup",
    "LCTrieIPLookup",
];

impl Maker {
    pub(super) fn of_ip4(&mut self, depth: u32) -> String {
        match self.rng.u32(0..11) {
            0 | 1 => self.table4(depth),
            2 => {
                let mut ways = vec![self.tail(Ip4, depth - 1)];
                if self.rng.bool() {
                    ways.push(self.tail(Any, 1));
                }
                let class = self.pick(&[
                    "DecIPTTL",
                    "DecIPTTL",
                    "DecIPTTL(MULTICAST false)",
                    "DecIPTTL(ACTIVE false)",
                ]);
                let orders = [("active", "true".to_owned()), ("active", "false".to_owned())];
                let orders = if self.for_click { &[][..] } else { &orders[..] };
                self.add_with(class, &ways, orders)
            }
            3 | 4 => {
                let mut patterns: Vec<&str> =
                    (0..self.rng.usize(1..5)).map(|_| self.pick(&PACKETS)).collect();
                if self.rng.bool() {
                    patterns.push("-");
                }
                let ways: Vec<String> = patterns.iter().map(|_| self.tail(Ip4, depth - 1)).collect();
                let order = ("pattern0", self.pick(&PACKETS).to_owned());
                self.add_with(&format!("IPClassifier({})", patterns.join(", ")), &ways, &[order])
            }
            5 | 6 => {
                let rule = |maker: &mut Maker| {
                    let verb = maker.pick(&["allow", "deny", "allow", "0", "drop"]);
                    format!("{verb} {}", maker.pick(&PACKETS))
                };
                let rules: Vec<String> = (0..self.rng.usize(1..7)).map(|_| rule(self)).collect();
                let next = self.tail(Ip4, depth - 1);
                let all = self.pick(&["allow all", "deny all"]);
                let order = ("config", format!("{}, {all}", rule(self)));
                self.add_with(&format!("IPFilter({}, {all})", rules.join(", ")), &[next], &[order])
            }
            7 => {
                let next = self.tail(Ip4, depth - 1);
                let class = self.pick(&[
                    "FixIPSrc(10.9.9.9)",
                    "GetIPAddress(16)",
                    "GetIPAddress(IP src)",
                    "GetIPAddress(IP dst)",
                ]);
                self.add(class, &[next])
            }
            8 => {
                let mut ways = vec![self.tail(Ip4, depth - 1)];
                if self.rng.bool() {
                    ways.push(self.tail(Any, 1));
                }
                let mtu = self.pick(&[1500, 576, 300, 68]);
                self.add(&format!("IPFragmenter({mtu})"), &ways)
            }
            9 => {
                let mut ways = vec![self.tail(Ip4, depth - 1)];
                if self.rng.bool() {
                    ways.push(self.tail(Any, 1));
                }
                self.add("IPGWOptions(10.1.2.1)", &ways)
            }
            _ => self.checked(Ip4, depth - 1),
        }
    }

    fn route4(&mut self, outputs: usize) -> String {
        let address = match self.rng.u32(0..6) {
            0 => 0,
            1 => 0x0a01_0000 | self.rng.u32(0..4) << 8,
            _ => 0x0a40_0000 | self.rng.u32(0..4) << 16 | self.rng.u32(0..4) << 8,
        };
        let len = if address == 0 { 0 } else { self.pick(&[10, 14, 16, 20, 24, 25, 32]) };
        let address = if len == 0 { 0 } else { address & (u32::MAX << (32 - len)) };
        let gateway = self.pick(&["", "", " 10.1.2.9", " 10.1.3.9"]);
        format!("{}/{len}{gateway} {}", std::net::Ipv4Addr::from(address), self.rng.usize(0..outputs))
    }

    fn table4(&mut self, depth: u32) -> String {
        let ways: Vec<String> = (0..self.rng.usize(1..4)).map(|_| self.tail(Ip4, depth - 1)).collect();
        let routes: Vec<String> = (0..self.rng.usize(1..9)).map(|_| self.route4(ways.len())).collect();
        let class = if self.for_click { self.pick(&TABLES[..5]) } else { self.pick(&TABLES) };
        let mut orders = vec![("add", self.route4(ways.len())), ("set", self.route4(ways.len()))];
        let prefix = |route: &String| route.split(' ').next().unwrap_or_default().to_owned();
        orders.push(("remove", prefix(&routes[0])));
        orders.push(("flush", String::new()));
        self.add_with(&format!("{class}({})", routes.join(", ")), &ways, &orders)
    }

    pub(super) fn of_ip6(&mut self, depth: u32) -> String {
        match self.rng.u32(0..4) {
            0 | 1 => {
                let mut ways = vec![self.tail(Ip6, depth - 1)];
                if self.rng.bool() {
                    ways.push(self.tail(Any, 1));
                }
                self.add("DecIP6HLIM", &ways)
            }
            2 => {
                let ways: Vec<String> =
                    (0..self.rng.usize(1..4)).map(|_| self.tail(Ip6, depth - 1)).collect();
                let route = |maker: &mut Maker| {
                    let gateway = maker.pick(&["", " 2001:db8:2::9"]);
                    let (net, len) = (maker.rng.u32(0..5), maker.pick(&[44, 48, 64, 128]));
                    format!("2001:db8:{:x}::/{len}{gateway} {}", 0x40 + net, maker.rng.usize(0..ways.len()))
                };
                let routes: Vec<String> = (0..self.rng.usize(1..6)).map(|_| route(self)).collect();
                let orders = [
                    ("add", route(self)),
                    ("add", format!("::/0 {}", ways.len() - 1)),
                    ("flush", String::new()),
                ];
                let orders = if self.for_click { &[][..] } else { &orders[..] };
                let table = self.add_with(&format!("LookupIP6Route({})", routes.join(", ")), &ways, orders);
                // Of Click's elements none else says what is to be looked up.
                if self.for_click { self.add("GetIP6Address(24)", &[table]) } else { table }
            }
            _ => self.checked(Ip6, depth - 1),
        }
    }
}

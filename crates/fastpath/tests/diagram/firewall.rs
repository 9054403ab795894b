//! A firewall of a hundred rules, and packets for it.

/// An IPv4 packet, behind an Ethernet header, with its headers marked.
pub struct Sent {
    pub protocol: u8,
    pub from: [u8; 4],
    pub to: [u8; 4],
    pub ports: [u16; 2],
}

impl Sent {
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 14 + 20 + 20];
        bytes[12] = 8;
        bytes[14] = 0x45;
        bytes[17] = 40;
        bytes[22] = 64;
        bytes[23] = self.protocol;
        bytes[26..30].copy_from_slice(&self.from);
        bytes[30..34].copy_from_slice(&self.to);
        bytes[34..36].copy_from_slice(&self.ports[0].to_be_bytes());
        bytes[36..38].copy_from_slice(&self.ports[1].to_be_bytes());
        bytes
    }
}

/// A hundred rules as administrators write them: servers, networks that may not, services.
pub fn rules() -> Vec<String> {
    let rule = |n: u16| match n % 4 {
        0 => format!("allow tcp and dst host 10.1.{}.{} and dst port {}", n / 16, n, 1000 + n),
        1 => format!("deny src net 10.{}.0.0/16 and dst net 10.{}.0.0/16", 20 + n, 120 + n),
        2 => format!("allow udp and src net 192.168.{n}.0/24 and dst port {}", 5000 + n),
        _ => format!("deny tcp and src host 172.16.{n}.1 and dst net 10.2.{n}.0/24"),
    };
    (0..100).map(rule).chain(["deny all".to_owned()]).collect()
}

/// The pattern of a rule.
pub fn pattern_of(rule: &str) -> &str {
    rule.split_once(' ').map_or("all", |(_, pattern)| pattern)
}

/// Packets that take long, and the first rule's.
pub fn packets() -> [(&'static str, Sent); 4] {
    [
        ("a TCP packet that no rule is about", Sent { protocol: 6, from: [9; 4], to: [8; 4], ports: [1, 2] }),
        (
            "a UDP packet that no rule is about",
            Sent { protocol: 17, from: [9; 4], to: [8; 4], ports: [1, 2] },
        ),
        ("the first rule's", Sent { protocol: 6, from: [9; 4], to: [10, 1, 0, 0], ports: [7, 1000] }),
        ("the last rule's", Sent { protocol: 6, from: [172, 16, 99, 1], to: [10, 2, 99, 9], ports: [7, 80] }),
    ]
}

//! Packets that a program in the driver handles in the place of elements, which count them as their own.

use causeway_engine::{Conf, Cx};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Key of the [`Handled`] among the values that outlive a hot swap.
pub const HANDLED: &str = "handled";

/// How often elements add to their counters what was handled for them, nanoseconds.
const PERIOD_NS: u64 = 100_000_000;

/// Has the element's timer `key` expire when it is to look again.
pub(crate) fn look_again(key: u32, cx: &mut Cx<'_>) {
    let when_ns = cx.now_ns() + PERIOD_NS;
    cx.set_timer(key, when_ns);
}

/// What a program in the driver has forwarded, from port to port, and how much of it was counted by elements. Whoever runs
/// the program keeps it.
pub struct Handled {
    ports: Vec<String>,
    forwarded: Box<dyn Fn(usize, usize) -> u64 + Send + Sync>,
    /// By role and port.
    counted: [Box<[AtomicU64]>; 4],
}

/// What an element does with packets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// It receives them from a port.
    Receives,
    /// It decides on those of a port.
    Decides,
    /// It leads them to a port.
    Leads,
    /// It sends them to a port.
    Sends,
}

impl Handled {
    /// For these ports, in the order that numbers them. `forwarded` says how many packets went from a port to another since
    /// the start.
    pub fn new(
        ports: Vec<String>,
        forwarded: impl Fn(usize, usize) -> u64 + Send + Sync + 'static,
    ) -> Handled {
        let none = || ports.iter().map(|_| AtomicU64::new(0)).collect();
        Handled { counted: [none(), none(), none(), none()], ports, forwarded: Box::new(forwarded) }
    }

    /// That of the router; one without ports where no program handles packets.
    pub(crate) fn find(conf: &mut Conf<'_>) -> Option<Arc<Handled>> {
        conf.env.persistent(HANDLED, || Handled::new(Vec::new(), |_, _| 0))
    }

    /// Packets of a port that nobody in this role has counted yet; from now on somebody has.
    fn take(&self, role: Role, port: usize) -> u64 {
        let Some(counted) = self.counted[role as usize].get(port) else { return 0 };
        let others = 0..self.ports.len();
        let all: u64 = match role {
            Role::Receives | Role::Decides => others.map(|to| (self.forwarded)(port, to)).sum(),
            Role::Leads | Role::Sends => others.map(|from| (self.forwarded)(from, port)).sum(),
        };
        all.saturating_sub(counted.fetch_max(all, Ordering::Relaxed))
    }

    /// What was forwarded since the start by each way that anything took, `IN>OUT`.
    pub(crate) fn ways(&self) -> Vec<(String, u64)> {
        let name = |port: usize| self.ports.get(port).map_or("", String::as_str);
        let pairs = (0..self.ports.len()).flat_map(|from| (0..self.ports.len()).map(move |to| (from, to)));
        let ways =
            pairs.map(|(from, to)| (format!("{}>{}", name(from), name(to)), (self.forwarded)(from, to)));
        ways.filter(|(_, packets)| *packets > 0).collect()
    }
}

/// One element's part.
pub(crate) struct Share {
    handled: Arc<Handled>,
    role: Role,
    port: usize,
}

impl Share {
    /// None where no program handles packets of the port. Of several copies of an element the first counts.
    pub fn find(conf: &mut Conf<'_>, role: Role, name: &str) -> Option<Share> {
        if conf.replica().0 != 0 {
            return None;
        }
        let handled = Handled::find(conf)?;
        let port = handled.ports.iter().position(|port| port == name)?;
        Some(Share { handled, role, port })
    }

    /// Packets to be counted now.
    pub fn take(&self) -> u64 {
        self.handled.take(self.role, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_role_counts_each_packet_once() {
        let counts = Arc::new(Mutex::new([[0u64; 2]; 2]));
        let read = counts.clone();
        let handled =
            Handled::new(vec!["a".into(), "b".into()], move |from, to| read.lock().unwrap()[from][to]);
        let take = |role| [handled.take(role, 0), handled.take(role, 1), handled.take(role, 2)];
        *counts.lock().unwrap() = [[1, 10], [100, 1000]];
        assert_eq!(take(Role::Receives), [11, 1100, 0]);
        assert_eq!(take(Role::Receives), [0, 0, 0]);
        counts.lock().unwrap()[0][1] += 5;
        assert_eq!(take(Role::Receives), [5, 0, 0]);
        assert_eq!(take(Role::Sends), [101, 1015, 0]);
        assert_eq!(take(Role::Decides), [16, 1100, 0]);
        assert_eq!(take(Role::Leads), [101, 1015, 0]);
        let ways = [("a>a", 1), ("a>b", 15), ("b>a", 100), ("b>b", 1000)];
        assert_eq!(handled.ways(), ways.map(|(way, n)| (way.to_owned(), n)));
    }
}

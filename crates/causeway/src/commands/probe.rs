//! What the kernel is asked for by calls that take unsafe code.

use crate::control::routers_here;
use crate::ports::Port;
use causeway_bpf::{TcxSide, tcx_programs};
use causeway_kernel::{Attachment, Program};
use causeway_netio::front::{is_a_bystander, is_of_a_front};
use causeway_netio::{ErrorKind, filter_dumps, socket_option};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

/// Asks by way of the crate of the ports.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// The number of our own program at tcx, once there is one.
    pub own: Arc<OnceLock<u32>>,
    /// Those of a router whose place is to be taken.
    replaced: Vec<u32>,
}

impl Probe {
    /// The programs that routers have at tcx of these ports are to be replaced, and count as our own; that of the router called
    /// `name` also where the kernel does not tell whose a program is.
    pub fn taking_over(ports: &[Port], name: Option<&str>) -> Probe {
        let old = routers_here().into_iter().find(|router| Some(router.name.as_str()) == name);
        let own = old.and_then(|router| router.tcx);
        let at = |port: &Port| tcx_programs(port.index, TcxSide::Ingress).unwrap_or_default();
        let is_replaced = |id: &u32| Some(*id) == own || is_of_a_front(*id) || is_a_bystander(*id);
        let replaced = ports.iter().flat_map(at).filter(is_replaced).collect();
        Probe { replaced, ..Probe::default() }
    }
}

impl causeway_kernel::Probe for Probe {
    fn socket_option(
        &self,
        socket: BorrowedFd<'_>,
        level: i32,
        name: i32,
        value: &mut [u8],
    ) -> io::Result<usize> {
        socket_option(socket, level, name, value)
    }

    fn filter_dumps(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        filter_dumps(socket)
    }

    /// Programs at tcx.
    fn programs(&self, ports: &[u32]) -> io::Result<Vec<Program>> {
        let mut programs = Vec::new();
        for &port in ports {
            for (side, attachment) in
                [(TcxSide::Ingress, Attachment::Ingress(port)), (TcxSide::Egress, Attachment::Egress(port))]
            {
                let ids = match tcx_programs(port, side) {
                    Ok(ids) => ids,
                    // It goes just now, and takes its programs along.
                    Err(e) if e.kind() == ErrorKind::NoInterface => continue,
                    Err(e) => return Err(io::Error::other(e)),
                };
                let is_ours = |id: &u32| self.own.get() == Some(id) || self.replaced.contains(id);
                let others = ids.into_iter().filter(|id| !is_ours(id));
                programs.extend(others.map(|id| Program { attachment, id }));
            }
        }
        Ok(programs)
    }
}

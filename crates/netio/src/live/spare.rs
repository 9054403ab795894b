//! Places to attach a program where no packet comes by: the loopback interface of a network namespace of its own.
//!
//! A socket made in a namespace keeps it, and configures it from anywhere. Making one takes more privileges than using
//! it; so who gives those up makes some before ([`prepare`]).

use crate::netlink;
use crate::{Error, ErrorKind, Result};
use causeway_bpf::Program;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

const RTM_SETLINK: u16 = 19;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_FD: u16 = 1;
const IFLA_XDP_FLAGS: u16 = 3;
/// In the stack, not in the driver.
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const LOOPBACK: i32 = 1;

/// Namespaces that nothing is attached in.
static FREE: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Makes `count` places beforehand: for who may not do so later.
///
/// # Errors
/// [`ErrorKind::Privilege`].
pub fn prepare(count: usize) -> Result<()> {
    for _ in 0..count {
        put_back(enter()?);
    }
    Ok(())
}

/// A place with a program. Dropping it takes the program off.
#[derive(Debug)]
pub struct Spare(Option<OwnedFd>);

impl Spare {
    /// Attaches `program`.
    ///
    /// # Errors
    /// [`ErrorKind::Privilege`], when none was made beforehand and none can be made; what the kernel answers.
    #[expect(clippy::disallowed_methods, reason = "when a port is opened")]
    pub fn attach(program: &Program) -> Result<Spare> {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let namespace = free.map_or_else(enter, Ok)?;
        set(&namespace, program.as_fd().as_raw_fd())?;
        Ok(Spare(Some(namespace)))
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(namespace) = self.0.take().filter(|n| set(n, -1).is_ok()) {
            put_back(namespace);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "when a port is closed")]
fn put_back(namespace: OwnedFd) {
    FREE.lock().unwrap_or_else(PoisonError::into_inner).push(namespace);
}

/// A routing socket in a new namespace. A thread is spent on it, because a namespace is entered by threads.
fn enter() -> Result<OwnedFd> {
    let enter = || {
        // SAFETY: changes only this thread, which ends with this closure.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err(Error::last_os("make a network namespace"));
        }
        netlink::open(libc::NETLINK_ROUTE).map_err(|e| Error::system("make a socket", e))
    };
    let joined = std::thread::scope(|s| s.spawn(enter).join());
    joined.unwrap_or_else(|_| Err(Error::new(ErrorKind::System, "the thread in the new namespace failed")))
}

/// Attaches the program with this descriptor to the namespace's loopback interface, or none for -1.
fn set(namespace: &OwnedFd, program: i32) -> Result<()> {
    let mut xdp = Vec::new();
    netlink::put(&mut xdp, IFLA_XDP_FD, &program.to_ne_bytes());
    netlink::put(&mut xdp, IFLA_XDP_FLAGS, &XDP_FLAGS_SKB_MODE.to_ne_bytes());
    // `struct ifinfomsg`: the index is its second word.
    let mut body = vec![0; 16];
    body[4..8].copy_from_slice(&LOOPBACK.to_ne_bytes());
    netlink::put(&mut body, IFLA_XDP | libc::NLA_F_NESTED as u16, &xdp);
    let done = netlink::ask(namespace, RTM_SETLINK, libc::NLM_F_ACK, &body);
    done.map(drop).map_err(|e| Error::system("attach a program to a spare interface", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bpf::{Asm, ProgramKind, Reg, action};

    #[test]
    fn places_are_used_again() {
        let mut a = Asm::new();
        a.mov(Reg::R0, action::XDP_DROP);
        a.exit();
        let program = match Program::load(ProgramKind::Xdp, "drop", &a.finish().expect("assembled")) {
            Ok(program) => program,
            Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
            Err(e) => panic!("{e}"),
        };
        let namespace = enter().expect("made");
        set(&namespace, program.as_fd().as_raw_fd()).expect("attached");
        assert!(set(&namespace, i32::MAX).is_err(), "no such program");
        set(&namespace, -1).expect("taken off");
        let one = namespace.as_raw_fd();
        put_back(namespace);
        // Others may use places meanwhile, so look for this one among all.
        let there = || FREE.lock().unwrap().iter().any(|n| n.as_raw_fd() == one);
        let mut taken = Vec::new();
        while there() {
            taken.push(Spare::attach(&program).expect("attached"));
        }
        drop(taken);
        assert!(there());
    }
}

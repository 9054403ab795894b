//! One entry that the programs of all ports pass through, and that closes when the process dies.

use crate::Result;
use causeway_bpf::{Asm, Code, Helper, Map, MapKind, Program, ProgramKind, Reg, action};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The program that is attached to every port, and the array of one program that it goes on in.
///
/// When a process is killed the kernel closes its descriptors, the highest number first, and detaches its programs one
/// by one, each after a wait: tens of milliseconds a port, in which packets go to sockets that nobody reads. The array
/// is emptied as soon as its last descriptor is closed, and this is the only one and has a high number. So all ports
/// pass to the kernel at once, however many there are.
#[derive(Debug)]
pub(super) struct Gate {
    /// To be attached.
    pub root: Program,
    _programs: Map,
}

impl Gate {
    /// A gate to `entry`, a program of kind `kind`.
    ///
    /// # Errors
    /// As [`Map::new`] and [`Program::load`].
    pub fn new(kind: ProgramKind, name: &str, entry: &Program) -> Result<Gate> {
        let programs = Map::new(MapKind::ProgArray, "gate", 4, 4, 1)?;
        let root = Program::load(kind, name, &root(kind, programs.as_fd())?)?;
        programs.insert_u32(0, entry.as_fd().as_raw_fd() as u32)?;
        Ok(Gate { root, _programs: programs.with_high_descriptor() })
    }
}

/// Goes on in the array's program; passes the frame to the kernel when there is none.
fn root(kind: ProgramKind, programs: BorrowedFd<'_>) -> Result<Code> {
    let pass = match kind {
        ProgramKind::SchedCls => action::TCX_NEXT,
        _ => action::XDP_PASS,
    };
    let mut a = Asm::new();
    // With an index that it knows the kernel writes the call into the machine code, which it mends when the array is emptied:
    // one place, in the one program of all ports. A call by the array is an indirect one, and where those are guarded against
    // speculation (retpolines) each costs some 25 ns a frame.
    a.mov(Reg::R3, 0);
    a.map(Reg::R2, programs);
    a.call(Helper::TailCall);
    a.mov(Reg::R0, pass);
    a.exit();
    a.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn it_closes_with_the_last_descriptor() {
        let mut a = Asm::new();
        a.mov(Reg::R0, action::XDP_DROP);
        a.exit();
        let entry = match Program::load(ProgramKind::XdpFragments, "drop", &a.finish().expect("assembled")) {
            Ok(entry) => entry,
            Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
            Err(e) => panic!("{e}"),
        };
        let Gate { root, _programs: programs } =
            Gate::new(ProgramKind::XdpFragments, "gate", &entry).expect("a gate");
        let run = || root.test_run(&[0; 60], None, 1).expect("run").verdict;
        assert_eq!(run(), action::XDP_DROP, "through the gate");
        assert!(programs.as_fd().as_raw_fd() > 100, "closed before all others");
        drop(programs);
        // The kernel empties the array by a work item of its own, which needs a processor.
        let closed = (0..1_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            run() == action::XDP_PASS
        });
        assert!(closed);
    }
}

//! What the kernel can do and this process may.

use super::Check;
use causeway_netio::bpf::{Asm, Program, ProgramKind, Reg, action};
use causeway_netio::{Error, ErrorKind};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{Resource, getrlimit};
use std::fs::OpenOptions;
use std::io;

/// The first kernel that holds traffic control hooks by descriptor (tcx), which frames are given back to it by.
const KERNEL: (u32, u32) = (6, 6);
/// The first kernel that says what XDP an interface's driver has.
const FEATURES: (u32, u32) = (6, 3);
/// Locked memory that the rings and maps of a few ports take, octets, where it is limited at all.
const MEMLOCK_BYTES: u64 = 64 << 20;

/// All checks that are not of an interface.
pub fn checks() -> Vec<Check> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut checks = vec![kernel(release.trim()), bpf(), af_xdp(), tun()];
    checks.extend(memlock());
    checks
}

/// Major and minor number of a kernel's release.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split('.').map(|part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        part[..digits].parse().unwrap_or(0)
    });
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn kernel(release: &str) -> Check {
    if version(release) >= KERNEL {
        return Check::good(format!("kernel {release}"));
    }
    let more = if version(release) < FEATURES { " nor say what XDP interfaces have" } else { "" };
    Check::missing(
        format!("kernel {release}: before 6.6 it cannot take frames back{more}"),
        "apt install -t bookworm-backports linux-image-$(dpkg --print-architecture) && reboot",
    )
}

fn bpf() -> Check {
    match load() {
        Ok(_) => Check::good("BPF: programs can be loaded"),
        Err(e) if e.kind() == ErrorKind::Privilege => Check::missing(
            "privileges: CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON and CAP_IPC_LOCK are needed",
            "sudo causeway doctor",
        ),
        Err(e) => Check::missing(
            format!("BPF: {}", e.to_string().lines().next().unwrap_or_default()),
            "use a kernel with CONFIG_BPF_SYSCALL and CONFIG_XDP_SOCKETS, as Debian's are",
        ),
    }
}

/// Loads the smallest XDP program.
fn load() -> Result<Program, Error> {
    let mut a = Asm::new();
    a.mov(Reg::R0, action::XDP_PASS);
    a.exit();
    Program::load(ProgramKind::Xdp, "doctor", &a.finish()?)
}

fn af_xdp() -> Check {
    match socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => Check::good("AF_XDP: sockets can be made"),
        Err(Errno::PERM | Errno::ACCESS) => {
            Check::missing("AF_XDP: not allowed without CAP_NET_RAW", "sudo causeway doctor")
        }
        Err(e) => Check::missing(
            format!("AF_XDP: {e}"),
            "use a kernel with CONFIG_XDP_SOCKETS, as Debian's are: apt install linux-image-$(dpkg --print-architecture)",
        ),
    }
}

fn tun() -> Check {
    const PATH: &str = "/dev/net/tun";
    match OpenOptions::new().read(true).write(true).open(PATH) {
        Ok(_) => Check::good("TAP interfaces can be made"),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            Check::missing(format!("{PATH}: {e}"), "sudo causeway doctor")
        }
        Err(e) => Check::missing(
            format!("{PATH}: {e}"),
            format!("modprobe tun; [ -e {PATH} ] || {{ mkdir -p /dev/net && mknod {PATH} c 10 200; }}"),
        ),
    }
}

/// Root is not limited.
fn memlock() -> Option<Check> {
    let limit = getrlimit(Resource::Memlock).current?;
    let short = limit < MEMLOCK_BYTES && !rustix::process::geteuid().is_root();
    short.then(|| {
        Check::warning(format!("locked memory is limited to {} KiB", limit >> 10), "ulimit -l unlimited")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::State;

    #[test]
    fn kernels_are_told_apart_by_number() {
        assert_eq!(version("6.18.5-causeway+"), (6, 18));
        assert_eq!(version("6.6-rc1"), (6, 6));
        assert_eq!(version("strange"), (0, 0));
        assert_eq!(kernel("6.10.1").state, State::Good);
        let old = kernel("6.1.0-26-amd64");
        assert!(old.state == State::Missing && old.what.contains("nor say"), "{old}");
    }
}

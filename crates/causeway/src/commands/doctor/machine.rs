//! What the kernel can do and this process may.

use super::report::Check;
use crate::privileges;
use causeway_bpf::{Asm, Program, ProgramKind, Reg, action};
use causeway_netio::Error;
use rustix::net::{AddressFamily, SocketType, socket};
use std::fs::OpenOptions;
use std::io;

/// The first kernel with tcx: programs of traffic control that are held by a descriptor, and go with the process.
const KERNEL: (u32, u32) = (6, 6);

/// All checks that are not of an interface. What takes privileges is tried only by who has them.
pub fn checks(privileged: bool) -> Vec<Check> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut checks = vec![kernel(release.trim()), privileges(&privileges::missing())];
    if privileged {
        checks.extend([bpf(), af_xdp(), tun()]);
    }
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
    const CODE: &str = "kernel";
    if version(release) >= KERNEL {
        return Check::good(CODE, "", format!("kernel {release}"));
    }
    Check::missing(
        CODE,
        "",
        format!(
            "kernel {release}: 6.6 or later is needed, for tcx, by which packets are given back to the kernel and \
             nothing stays attached when the router is killed"
        ),
        "apt install -t bookworm-backports linux-image-$(dpkg --print-architecture) && reboot",
    )
}

fn privileges(missing: &[&str]) -> Check {
    const CODE: &str = "privileges";
    let all = privileges::NAMES.map(|(_, name)| name);
    // Who is not root may not read what tables the old packet filter has, without one more.
    let for_good = format!("{},cap_dac_read_search+ep", all.join(",").to_lowercase());
    if missing.is_empty() {
        return Check::good(CODE, "", format!("privileges: {}", all.join(", ")));
    }
    Check::missing(
        CODE,
        "",
        format!(
            "privileges: without {}; what takes privileges was not looked at: BPF, sockets, packet filter",
            missing.join(", ")
        ),
        format!("sudo causeway doctor    # for good: sudo setcap {for_good} \"$(command -v causeway)\""),
    )
}

fn bpf() -> Check {
    const CODE: &str = "bpf";
    match load() {
        Ok(_) => Check::good(CODE, "", "BPF: programs can be loaded"),
        Err(e) => Check::missing(
            CODE,
            "",
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
    const CODE: &str = "af-xdp";
    match socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => Check::good(CODE, "", "AF_XDP: sockets can be made"),
        Err(e) => Check::missing(
            CODE,
            "",
            format!("AF_XDP: {e}"),
            "use a kernel with CONFIG_XDP_SOCKETS, as Debian's are: apt install linux-image-$(dpkg --print-architecture)",
        ),
    }
}

fn tun() -> Check {
    const CODE: &str = "tun";
    const PATH: &str = "/dev/net/tun";
    match OpenOptions::new().read(true).write(true).open(PATH) {
        Ok(_) => Check::good(CODE, "", "TAP interfaces can be made"),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            Check::missing(CODE, "", format!("{PATH}: {e}"), format!("chmod a+rw {PATH}"))
        }
        Err(e) => Check::missing(
            CODE,
            "",
            format!("{PATH}: {e}"),
            format!("modprobe tun; [ -e {PATH} ] || {{ mkdir -p /dev/net && mknod {PATH} c 10 200; }}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::State;
    use super::*;

    #[test]
    fn kernels_are_told_apart_by_number() {
        assert_eq!(version("6.18.5-causeway+"), (6, 18));
        assert_eq!(version("6.6-rc1"), (6, 6));
        assert_eq!(version("strange"), (0, 0));
        assert_eq!(kernel("6.10.1").state, State::Good);
        assert_eq!(kernel("6.6.0").state, State::Good);
        let old = kernel("6.5.0-26-amd64");
        assert!(old.state == State::Missing && old.what.contains("6.6") && old.what.contains("tcx"), "{old}");
    }

    #[test]
    fn missing_capabilities_are_named() {
        assert_eq!(privileges(&[]).state, State::Good);
        let check = privileges(&["CAP_BPF", "CAP_PERFMON"]);
        assert!(
            check.state == State::Missing && check.what.contains("without CAP_BPF, CAP_PERFMON;"),
            "{check}"
        );
        let all = "cap_net_admin,cap_net_raw,cap_bpf,cap_perfmon,cap_ipc_lock,cap_dac_read_search+ep";
        assert!(check.mend.contains(all), "{check}");
    }
}

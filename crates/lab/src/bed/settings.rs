//! Settings of the kernel that forwarding in a bed depends on.

use super::Bed;
use causeway_netio::offload::{Offload, is_on};

/// Files of /proc/sys/net that each network namespace has its own of.
const OWN: [&str; 4] =
    ["ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/conf/all/rp_filter", "ipv4/conf/r0/rp_filter"];
/// Those of the whole machine.
const WHOLE: [&str; 4] =
    ["core/netdev_budget", "core/netdev_budget_usecs", "core/netdev_max_backlog", "core/dev_weight"];

/// What the calling thread's network namespace has of these; what is not there is not told.
fn read(files: &[&str]) -> Vec<String> {
    let value = |file: &&str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/{file}")).ok()?;
        Some(format!("net.{} = {}", file.replace('/', "."), text.trim()))
    };
    files.iter().filter_map(value).collect()
}

impl Bed {
    /// As they are now where the first device is, one after the other: sysctls, GRO and receive packet steering of r0.
    pub fn kernel_settings(&self) -> String {
        let device = &self.devices[0];
        let mut all = device.run(|| Ok(read(&OWN))).unwrap_or_default();
        all.extend(read(&WHOLE));
        if let Ok(on) = device.run(|| Ok(is_on("r0", Offload::Gro)?)) {
            all.push(format!("gro of r0 = {}", if on { "on" } else { "off" }));
        }
        // The files of another namespace's interfaces are seen by a program that was started there alone.
        let steering = device.command("cat").arg("/sys/class/net/r0/queues/rx-0/rps_cpus").output();
        if let Some(mask) = steering.ok().filter(|out| out.status.success()) {
            all.push(format!("rps_cpus of r0 = {}", String::from_utf8_lossy(&mask.stdout).trim()));
        }
        all.join("; ")
    }
}

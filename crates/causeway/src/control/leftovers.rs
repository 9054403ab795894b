//! What a router that was killed has left behind, and undoing it.

use super::record::{Record, Undo, Whereabouts};
use causeway_kernel::{ManagedNeighbour, release_managed};
use causeway_netio::interface::name_by_index;
use causeway_netio::offload::{Offload, is_on, set_offload};
use std::net::IpAddr;
use std::path::Path;

/// The code of what is said of this.
pub const CODE: &str = "leftovers";

/// Undoes what a dead router has changed in this network namespace, removes its files, and says so in a line. If it
/// changed something in another namespace, its record stays for a router that starts there; what it changed in one that is no
/// more went with that.
pub fn undo(record: &Record, dir: &Path) -> Option<String> {
    let done = match record.whereabouts() {
        _ if record.undo.is_empty() => Vec::new(),
        Whereabouts::Elsewhere => return None,
        Whereabouts::Gone => Vec::new(),
        Whereabouts::Here => offloads(record).chain(neighbours(record)).collect(),
    };
    record.remove_files(dir);
    let text = if done.is_empty() { String::new() } else { format!(": {}", done.join(", ")) };
    let Record { name, pid, .. } = record;
    Some(format!("undone what router '{name}' (process {pid}), which was killed, left behind{text}"))
}

/// Logs what was undone.
pub fn log(undone: &[String]) {
    undone.iter().for_each(|line| log::info!(code = CODE; "{line}"));
}

/// Turns offloads on again: by the interface's index, since its name may be another's by now.
fn offloads(record: &Record) -> impl Iterator<Item = String> + '_ {
    record.undo.offloads.iter().filter_map(|(recorded, name, index)| {
        let offload = Offload::by_name(name)?;
        let now = match index {
            Some(index) => name_by_index(*index),
            // An earlier version has recorded nothing else.
            None => Some(recorded.clone()),
        };
        let Some(now) = now else {
            return Some(format!("{name} of {recorded} is left as it is, for that interface is gone"));
        };
        if is_on(&now, offload).unwrap_or(true) {
            return None;
        }
        let which = if now == *recorded { now.clone() } else { format!("{now}, which was {recorded},") };
        match set_offload(&now, offload, true) {
            Ok(()) => Some(format!("{name} of {which} on again")),
            Err(e) => Some(format!("{name} of {which} stays off: {e}")),
        }
    })
}

/// Neighbours that the kernel was told to keep resolved.
pub fn managed(undo: &Undo) -> Vec<ManagedNeighbour> {
    let managed = |(ifname, ifindex, address): &(String, u32, IpAddr)| ManagedNeighbour {
        ifname: ifname.clone(),
        ifindex: *ifindex,
        address: *address,
    };
    undo.neighbours.iter().map(managed).collect()
}

/// Lets the kernel's neighbour entries age again.
fn neighbours(record: &Record) -> Option<String> {
    let list = managed(&record.undo);
    if list.is_empty() {
        return None;
    }
    Some(match release_managed(&list) {
        Ok(number) => format!("{number} neighbours age again"),
        Err(e) => format!("neighbours do not age: {e}"),
    })
}

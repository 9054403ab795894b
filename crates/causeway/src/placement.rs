//! Which processors the workers get when nobody says it.
//!
//! A worker that may run anywhere is moved onto the processor that serves the interrupts of the ports, and back: then a router
//! has two speeds. So each is pinned: apart from the processors that serve the interrupts of network cards if there are others,
//! and from those of the workers of other routers. With a single processor, or more workers than processors, the kernel chooses.

use crate::control;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

/// A processor and the number of workers of other routers that are pinned to it.
type Load = (usize, usize);

/// The processors for the workers of the router called `name`; none if the kernel is to choose.
pub fn choose(workers: usize, name: &str) -> Vec<usize> {
    let pinned = pinned_workers(name);
    let loads: Vec<Load> =
        allowed().into_iter().map(|p| (p, pinned.iter().filter(|&&other| other == p).count())).collect();
    place(workers, &loads, &interrupted())
}

/// The processors on which who started the router lets it run, with taskset(1) or CPUAffinity= of a unit.
fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// The processors that have least to do: of those with as much the last, since what else is started begins at the first.
fn place(workers: usize, loads: &[Load], interrupted: &[usize]) -> Vec<usize> {
    if loads.len() < 2 || workers > loads.len() {
        return Vec::new();
    }
    let mut all = loads.to_vec();
    all.sort_by_key(|&(processor, pinned)| (interrupted.contains(&processor), pinned, Reverse(processor)));
    let mut chosen: Vec<usize> = all.into_iter().take(workers).map(|(processor, _)| processor).collect();
    chosen.sort_unstable();
    chosen
}

/// The processors of the workers of this user's other routers. One of the same name in this namespace is taken over.
fn pinned_workers(name: &str) -> Vec<usize> {
    let here = control::own_netns().ok();
    let is_taken_over =
        |record: &control::Record| record.name == name && Some(&record.netns) == here.as_ref();
    control::all_routers()
        .filter(|record| !is_taken_over(record))
        .flat_map(|record| workers_of(&PathBuf::from(format!("/proc/{}/task", record.pid))))
        .collect()
}

/// The processors of the pinned workers among the threads of a process.
fn workers_of(tasks: &Path) -> Vec<usize> {
    let threads = fs::read_dir(tasks).into_iter().flatten().flatten().map(|entry| entry.path());
    let processor = |thread: PathBuf| {
        let name = fs::read_to_string(thread.join("comm")).ok()?;
        name.starts_with("worker-").then_some(())?;
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        // More than one is a range or a list.
        list.trim().parse().ok()
    };
    threads.filter_map(processor).collect()
}

/// The processors that serve the interrupts of network cards.
fn interrupted() -> Vec<usize> {
    let cards = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let interrupts =
        cards.flat_map(|card| fs::read_dir(card.path().join("device/msi_irqs")).into_iter().flatten());
    let list = |number: &str| {
        let file = |name: &str| fs::read_to_string(format!("/proc/irq/{number}/{name}")).ok();
        file("effective_affinity_list").or_else(|| file("smp_affinity_list"))
    };
    interrupts
        .flatten()
        .filter_map(|entry| list(entry.file_name().to_str()?))
        .flat_map(|text| numbers(&text))
        .collect()
}

/// The numbers of a list as the kernel writes it, such as `0,4-6`.
fn numbers(list: &str) -> Vec<usize> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(part).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(processors: usize) -> Vec<Load> {
        (0..processors).map(|p| (p, 0)).collect()
    }

    #[test]
    fn workers_are_apart_from_interrupts_and_from_each_other() {
        assert_eq!(place(1, &idle(2), &[]), [1]);
        assert_eq!(place(2, &idle(4), &[]), [2, 3]);
        assert_eq!(place(2, &idle(4), &[3]), [1, 2]);
        assert_eq!(place(1, &[(0, 0), (1, 1)], &[]), [0]);
        assert_eq!(place(1, &[(0, 1), (1, 1)], &[]), [1]);
        // The processors of interrupts come last, whatever the others have to do, and are better than none.
        assert_eq!(place(1, &[(0, 2), (1, 0)], &[1]), [0]);
        assert_eq!(place(2, &idle(2), &[0, 1]), [0, 1]);
    }

    #[test]
    fn the_kernel_chooses_where_there_is_no_choice() {
        assert!(place(1, &idle(1), &[]).is_empty() && place(3, &idle(2), &[]).is_empty());
    }

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(numbers("0,4-6\n"), [0, 4, 5, 6]);
        assert_eq!(numbers("\n"), [0; 0]);
        assert_eq!(numbers("x,2"), [2]);
    }

    #[test]
    fn pinned_threads_that_are_workers_are_found() {
        let (ready, began) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let processor = allowed()[0];
        let body = move || {
            let mut set = CpuSet::new();
            set.set(processor);
            rustix::thread::sched_setaffinity(None, &set).expect("pinned");
            ready.send(()).expect("heard");
            let _ = ends.recv();
            let freed = std::thread::spawn(|| {
                causeway_engine::unpin();
                allowed()
            });
            freed.join().expect("it runs")
        };
        let thread = std::thread::Builder::new().name("worker-0".to_owned()).spawn(body).expect("started");
        began.recv().expect("it runs");
        assert_eq!(workers_of(Path::new("/proc/self/task")), [processor]);
        drop(end);
        assert_eq!(thread.join().expect("ended"), allowed(), "who a pinned one starts runs where it likes");
    }
}

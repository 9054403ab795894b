//! What an experiment needs of a machine, and the processors that it gets.

use crate::bed::MOST_PORTS;
use anyhow::{Result, bail, ensure};

/// What an experiment needs between namespaces.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Processors that this program may use: the first for the tester, the others for the router.
    pub processors: usize,
    /// Ports of the bed.
    pub ports: usize,
    /// Interrupts of cards, and what for. Those of reception are the mechanisms' own here, so they are not meant.
    pub interrupts: Option<&'static str>,
}

/// A processor for the tester, one for the router.
pub const fn ports(ports: usize) -> Needs {
    Needs { processors: 2, ports, interrupts: None }
}

/// Processors of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Of the tester.
    pub tester: usize,
    /// Of the router: with three or more the first two have a cache together that the third has no part in, if there are such.
    pub router: Vec<usize>,
}

impl Needs {
    /// The processors, chosen from those that this program may use; `share` says whether two have a cache together that not all
    /// have.
    ///
    /// # Errors
    /// What is lacking.
    pub fn places(&self, usable: &[usize], share: impl Fn(usize, usize) -> bool) -> Result<Places> {
        if let Some(what) = self.interrupts {
            bail!("it takes interrupts of cards {what}, and a veth has none");
        }
        ensure!(
            self.ports <= MOST_PORTS,
            "it takes {} ports, and a test bed has at most {MOST_PORTS}",
            self.ports
        );
        if usable.len() < self.processors {
            let routers = match self.processors - 1 {
                1 => "one".to_owned(),
                more => more.to_string(),
            };
            bail!(
                "it takes {} processors, one for the tester and {routers} for the router, and this program may use {} here",
                self.processors,
                usable.len()
            );
        }
        let near = |&(a, b, c): &(usize, usize, usize)| share(a, b) && !share(a, c) && !share(b, c);
        let three = if self.processors > 3 { triples(usable).find(near) } else { None };
        let router: Vec<usize> = match three {
            Some((a, b, c)) => {
                let rest = usable.iter().copied().filter(|one| ![a, b, c].contains(one));
                [a, b, c].into_iter().chain(rest).take(self.processors - 1).collect()
            }
            None => usable.iter().copied().skip(1).take(self.processors - 1).collect(),
        };
        let tester = usable.iter().copied().find(|one| !router.contains(one));
        Ok(Places { tester: tester.unwrap_or_default(), router })
    }
}

/// All ways to take three, of which the order of the first two does not matter.
fn triples(all: &[usize]) -> impl Iterator<Item = (usize, usize, usize)> {
    let pairs = all.iter().enumerate().flat_map(|(at, &a)| all[at + 1..].iter().map(move |&b| (a, b)));
    pairs.flat_map(move |(a, b)| all.iter().filter(move |c| ![a, b].contains(c)).map(move |&c| (a, b, c)))
}

/// Whether two processors have a cache of the second level together: that of the third is mostly all processors'.
pub fn share_cache(a: usize, b: usize) -> bool {
    let cache = format!("/sys/devices/system/cpu/cpu{a}/cache");
    let read = |at: usize, file: &str| std::fs::read_to_string(format!("{cache}/index{at}/{file}"));
    (0..8)
        .filter(|&at| read(at, "level").is_ok_and(|level| level.trim() == "2"))
        .any(|at| read(at, "shared_cpu_list").is_ok_and(|list| listed(&list, b)))
}

/// Whether a list such as `0-3,8` has a processor.
fn listed(list: &str, processor: usize) -> bool {
    list.trim().split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends = first.parse::<usize>().ok().zip(last.parse::<usize>().ok());
        ends.is_some_and(|(first, last)| (first..=last).contains(&processor))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(needs: Needs, usable: &[usize]) -> String {
        needs.places(usable, |_, _| false).expect_err("refused").to_string()
    }

    #[test]
    fn what_the_machine_lacks_is_said() {
        let all: Vec<usize> = (0..16).collect();
        let four = Needs { processors: 4, ..ports(3) };
        assert_eq!(
            error(four, &all[..2]),
            "it takes 4 processors, one for the tester and 3 for the router, and this program may use 2 here"
        );
        assert!(
            error(ports(2), &all[..1]).contains("2 processors, one for the tester and one for the router")
        );
        let many = error(ports(MOST_PORTS + 1), &all);
        assert!(many.contains("17 ports") && many.ends_with("at most 16"), "{many}");
        let card = Needs { interrupts: Some("that say what was sent"), ..ports(2) };
        assert_eq!(
            error(card, &all),
            "it takes interrupts of cards that say what was sent, and a veth has none"
        );
        for needs in [ports(2), four] {
            let places = needs.places(&all, |_, _| false).expect("sixteen are enough");
            assert_eq!((places.tester, places.router.len()), (0, needs.processors - 1));
        }
    }

    #[test]
    fn two_processors_of_three_share_a_cache_where_there_are_such() {
        let four = Needs { processors: 4, ..ports(3) };
        let places = |usable: &[usize], share: fn(usize, usize) -> bool| {
            let places = four.places(usable, share).expect("enough");
            (places.tester, places.router)
        };
        let pairs = |a: usize, b: usize| a / 2 == b / 2;
        assert_eq!(places(&[0, 1, 2, 3], pairs), (3, vec![0, 1, 2]));
        assert_eq!(places(&[1, 2, 4, 5], pairs), (2, vec![4, 5, 1]));
        assert_eq!(places(&[1, 3, 5, 7], pairs), (1, vec![3, 5, 7]), "each has its own");
        assert_eq!(places(&[0, 1, 2, 3, 4], |_, _| true), (0, vec![1, 2, 3]), "all share one");
        let two = ports(2).places(&[0, 1, 2, 3], pairs).expect("enough");
        assert_eq!(two, Places { tester: 0, router: vec![1] });
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert!(listed("0-3,8\n", 2) && listed("0-3,8\n", 8) && listed("5", 5));
        assert!(!listed("0-3,8\n", 5) && !listed("", 0) && !listed("a-b", 1));
    }
}

//! When the frames of one port leave in a trial.

use crate::search::Request;
use causeway_results::traffic::{Departures, Plan, Traffic};

/// Times in nanoseconds from the start of the trial, never falling.
#[derive(Clone, Debug)]
pub struct Timetable {
    /// Departures of each load, when it begins and when it ends. The first is the present one.
    segments: std::collections::VecDeque<(Departures, u64, u64)>,
    left: u64,
}

impl Timetable {
    /// What `port` sends of a trial.
    pub fn new(traffic: &Traffic, plan: &Plan, request: &Request, port: usize) -> Timetable {
        let (share, mut start_ns) = (plan.share(port), 0);
        let segments = request.segments.iter().map(|segment| {
            let departures =
                traffic.schedule.departures(segment.load_fps * share, traffic.seed.wrapping_add(port as u64));
            let begins_ns = start_ns;
            start_ns += segment.duration_ns;
            (departures, begins_ns, start_ns)
        });
        let most = |most: u64| (most as f64 * share).round() as u64;
        Timetable { segments: segments.collect(), left: request.most_frames.map_or(u64::MAX, most) }
    }
}

impl Timetable {
    /// How many departures are left.
    pub fn remaining(self) -> u64 {
        let of = |(departures, begins_ns, ends_ns): (Departures, u64, u64)| {
            departures.count_before(ends_ns - begins_ns)
        };
        self.segments.into_iter().map(of).sum::<u64>().min(self.left)
    }
}

impl Iterator for Timetable {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        loop {
            let (departures, begins_ns, ends_ns) = self.segments.front_mut()?;
            let at = departures.next().map(|at| *begins_ns + at);
            match at.filter(|at| at < ends_ns) {
                Some(at) => {
                    self.left = self.left.checked_sub(1)?;
                    return Some(at);
                }
                None => self.segments.pop_front(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Segment;
    use causeway_results::traffic::Matrix;

    fn times(request: &Request, port: usize) -> Vec<u64> {
        let traffic = Traffic { matrix: Matrix::Custom(vec![vec![0, 3], vec![1, 0]]), ..Traffic::simple(64) };
        let plan = Plan::new(&traffic, 2).expect("a plan");
        Timetable::new(&traffic, &plan, request, port).collect()
    }

    #[test]
    fn loads_follow_each_other_and_ports_have_their_share() {
        let segment = |load_fps, duration_ns| Segment { load_fps, duration_ns };
        let segments = vec![segment(4e9 / 30.0, 100), segment(0.0, 50), segment(4e9 / 120.0, 100)];
        let request = Request { segments, most_frames: None, event: None };
        let near = |found: Vec<u64>, told: &[u64]| {
            found.len() == told.len() && found.iter().zip(told).all(|(a, b)| a.abs_diff(*b) <= 1)
        };
        assert!(near(times(&request, 0), &[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 150, 190, 230]));
        assert!(near(times(&request, 1), &[0, 30, 60, 90, 150]));
        let traffic = Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) };
        let plan = Plan::new(&traffic, 2).expect("a plan");
        for most_frames in [None, Some(12)] {
            let request = Request { most_frames, ..request.clone() };
            let mut timetable = Timetable::new(&traffic, &plan, &request, 0);
            let all = timetable.clone().count();
            for taken in 0..all {
                assert_eq!(timetable.clone().remaining(), (all - taken) as u64, "after {taken}");
                timetable.next();
            }
            assert_eq!(timetable.remaining(), 0);
        }
    }

    #[test]
    fn a_burst_has_its_length() {
        for frames in [1, 7, 4_000] {
            assert_eq!(times(&Request::burst(4 * frames, 1e6), 0).len() as u64, 3 * frames);
            assert_eq!(times(&Request::burst(4 * frames, 1e6), 1).len() as u64, frames);
        }
    }
}

//! Queues of which theory knows everything: the queue of events and the sources, held against them.

use causeway_model::event::{Queue, SECOND, Time};
use causeway_model::link::{Link, Source, Spacing};
use fastrand::Rng;
use std::collections::VecDeque;

#[derive(Clone, Copy)]
enum Event {
    Arrival,
    Departure,
}

/// Mean and half of its 95 % interval, from the means of batches.
fn interval(values: &[f64], batches: usize) -> (f64, f64) {
    let means: Vec<f64> = values
        .chunks_exact(values.len() / batches)
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let variance = means.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (means.len() - 1) as f64;
    (mean, 2.0 * (variance / means.len() as f64).sqrt())
}

/// One server. Each customer's time in the system in picoseconds, and how many were turned away.
fn serve(
    mut arrival: impl FnMut() -> Time,
    mut service: impl FnMut() -> Time,
    room: usize,
    customers: usize,
) -> (Vec<f64>, usize) {
    let (mut queue, mut inside, mut times, mut refused) = (Queue::new(), VecDeque::new(), Vec::new(), 0);
    queue.at(arrival(), Event::Arrival);
    while times.len() + refused < customers {
        match queue.pop().expect("arrivals do not end") {
            Event::Arrival => {
                if inside.len() < room {
                    inside.push_back(queue.now_ps());
                    if inside.len() == 1 {
                        queue.after(service(), Event::Departure);
                    }
                } else {
                    refused += 1;
                }
                queue.at(arrival(), Event::Arrival);
            }
            Event::Departure => {
                let since = inside.pop_front().expect("who departs was inside");
                times.push((queue.now_ps() - since) as f64);
                if !inside.is_empty() {
                    queue.after(service(), Event::Departure);
                }
            }
        }
    }
    (times, refused)
}

/// Mean wait of M/D/1: ρ / (2 (1 - ρ)) times the service (Pollaczek and Khinchine).
#[test]
fn waits_of_m_d_1_are_those_of_theory() {
    // The wire before the queue is so fast that arrivals are Poisson's.
    let (fast, link) = (Link { rate_bps: 1_000_000_000_000_000 }, Link { rate_bps: 1_000_000_000 });
    let service = link.frame_ps(64);
    for load in [0.5, 0.8] {
        let rate = load * link.most_fps(64);
        let mut source = Source::new(fast, 64, rate, Spacing::Poisson, 1);
        let (times, _) = serve(|| source.next_ps(), || service, usize::MAX, 400_000);
        let expected = service as f64 * (1.0 + load / (2.0 * (1.0 - load)));
        let (mean, half) = interval(&times[20_000..], 20);
        assert!((mean - expected).abs() < half, "load {load}: {mean} ± {half}, expected {expected}");
        assert!(half < 0.03 * expected, "load {load}: the interval {half} says little");
    }
}

/// Loss of M/M/1/K: (1 - ρ) ρ^K / (1 - ρ^(K+1)).
#[test]
fn losses_of_m_m_1_k_are_those_of_theory() {
    let mean_ps = SECOND as f64 / 1e6;
    for (load, room) in [(0.8f64, 5), (1.5, 10)] {
        let fast = Link { rate_bps: 1_000_000_000_000_000 };
        let mut source = Source::new(fast, 64, load * 1e6, Spacing::Poisson, 2);
        let mut rng = Rng::with_seed(3);
        let mut service = || (-mean_ps * (1.0 - rng.f64()).ln()) as Time;
        let losses: Vec<f64> = (0..20)
            .map(|_| {
                let mut first = None;
                // Each batch begins with an empty system, at its own time 0.
                let mut arrival = || {
                    let next = source.next_ps();
                    next - *first.get_or_insert(next)
                };
                serve(&mut arrival, &mut service, room, 20_000).1 as f64 / 20_000.0
            })
            .collect();
        let power = load.powi(room as i32);
        let expected = (1.0 - load) * power / (1.0 - power * load);
        let (mean, half) = interval(&losses, 20);
        assert!(
            (mean - expected).abs() < half,
            "load {load}, room {room}: {mean} ± {half}, expected {expected}"
        );
        assert!(half < 0.03 * expected, "load {load}: the interval {half} says little");
    }
}

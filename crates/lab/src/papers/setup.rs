//! Routers that are compared on a bed, and what is offered to them.

use super::needs::Places;
use crate::bed::{Graph, Kind};
use crate::run::{Comparison, Description, Preset};
use crate::tester::Alone;
use causeway_results::traffic::{Matrix, Sizes, Traffic};
use std::time::Duration;

/// A comparison of an experiment.
pub struct Setup {
    pub ports: usize,
    pub traffic: Traffic,
    pub sizes: Vec<(String, Sizes)>,
    /// Each with its name.
    pub routers: Vec<(String, Kind)>,
    /// How long a trial lasts at least; half as long is waited for what comes late.
    pub lasts: Duration,
}

/// NAPI's quota where it is not varied (OSR §3.3).
pub const QUOTA: u32 = 64;
/// Packets of a run of NAPI (OSR §3.3).
const BUDGET: u32 = 300;
/// Routes of the detour, some 4 us: twice what OSR's processor took for a packet, 5 500 cycles of 2.8 GHz (section 4.2), so that
/// a tester on a processor of the same machine offers it more than it can do.
const DETOUR_ROUTES: u32 = 4_000;

/// How long trials of packet sockets last: their rings take some 50 000 of the shortest frames, which a router forwards after
/// the end of a trial, and which would be half of a short one.
const PACKET_TRIAL: Duration = Duration::from_secs(1);

/// The plain router with a mechanism of reception at all ports.
pub fn mechanism(name: &str, reception: &str) -> (String, Kind) {
    graph(name, vec![format!("RECEPTION {reception}")])
}

/// The plain router with NAPI: quotas of its ports, and again from the first.
pub fn napi(name: &str, quotas: &[u32]) -> (String, Kind) {
    graph(name, quotas.iter().map(|quota| format!("RECEPTION napi, QUOTA {quota}")).collect())
}

/// The plain router whose reception by interrupts is a thread that takes the processor from the one that forwards.
pub fn two_threads(name: &str) -> (String, Kind) {
    let of = |graph| Kind::Graph(Graph { two_threads: true, ..graph });
    (name.to_owned(), of(plain(vec!["RECEPTION disable-enable".to_owned()])))
}

/// This program, by packet sockets with NAPI: one that recycles the memory of packets, and one that takes that of each from the
/// general allocator. Ports over AF_XDP could not. Packets make no detour: memory is little of what they cost as it is.
pub fn recycling(ports: usize, matrix: Matrix) -> Setup {
    let one = |(name, more): (&str, Option<&str>)| {
        let mut graph = Graph { detour_routes: 0, ..plain(vec![format!("RECEPTION napi, QUOTA {QUOTA}")]) };
        graph.method = Some("PACKET".to_owned());
        graph.arguments.extend(more.map(str::to_owned));
        (name.to_owned(), Kind::Graph(graph))
    };
    let routers = [("recycling", None), ("no recycling", Some("--no-recycling"))].map(one);
    Setup { lasts: PACKET_TRIAL, ..Setup::new(ports, matrix, routers.into()) }
}

/// This program, which only receives or transmits. Packets make no detour.
pub fn alone(name: &str, alone: Alone, reception: &str) -> (String, Kind) {
    let reception = vec![format!("RECEPTION {reception}")];
    (name.to_owned(), Kind::Graph(Graph { alone: Some(alone), detour_routes: 0, ..plain(reception) }))
}

fn graph(name: &str, reception: Vec<String>) -> (String, Kind) {
    (name.to_owned(), Kind::Graph(plain(reception)))
}

fn plain(reception: Vec<String>) -> Graph {
    let arguments = vec!["--budget".to_owned(), BUDGET.to_string()];
    Graph { reception, detour_routes: DETOUR_ROUTES, arguments, ..Graph::default() }
}

/// The plain router with a thread of each port: on which of the router's processors.
pub fn threads((name, kind): (String, Kind), processors: &[usize]) -> (String, Kind) {
    let of = |graph| Kind::Graph(Graph { own_threads: processors.to_vec(), ..graph });
    (name, if let Kind::Graph(graph) = kind { of(graph) } else { kind })
}

/// Frames of one length.
pub fn fixed(bytes: u32) -> (String, Sizes) {
    (format!("{bytes} bytes"), Sizes::Fixed(bytes))
}

/// So many pairs of ports, from the first of each to the second; back as well if `both` ways are asked for.
pub fn pairs(flows: usize, both: bool) -> Matrix {
    let goes = |from: usize, to: usize| (from ^ 1 == to && (both || from.is_multiple_of(2))) as u32;
    let ports = 0..2 * flows;
    Matrix::Custom(ports.clone().map(|from| ports.clone().map(|to| goes(from, to)).collect()).collect())
}

impl Setup {
    /// Routers between so many ports, with frames of 64 bytes and random addresses.
    pub fn new(ports: usize, matrix: Matrix, routers: Vec<(String, Kind)>) -> Setup {
        let traffic = Traffic { matrix, ..Traffic::simple(64) };
        Setup { ports, traffic, sizes: vec![fixed(64)], routers, lasts: Duration::ZERO }
    }

    /// Devices that receive or transmit alone by so many ports; one more has the hosts behind it that frames are for.
    pub fn alone(ports: usize, devices: Vec<(String, Kind)>) -> Setup {
        Setup::new(ports + 1, Matrix::ManyToOne(ports), devices)
    }

    /// With other lengths of frames.
    pub fn of_sizes(self, sizes: Vec<(String, Sizes)>) -> Setup {
        Setup { sizes, ..self }
    }

    /// As it is measured, so many times, by a tester and routers on these processors.
    pub fn comparison(self, preset: Preset, repetitions: usize, places: &Places) -> Comparison {
        let mut preset = preset;
        preset.trial_ns = preset.trial_ns.max(self.lasts.as_nanos() as u64);
        preset.settle = preset.settle.max(self.lasts / 2);
        let devices: Vec<String> = self.routers.iter().map(|(name, _)| name.clone()).collect();
        Comparison {
            description: Description {
                ports: self.ports,
                tester_processors: vec![places.tester],
                device_processors: places.router.clone(),
                devices: self.routers.into_iter().collect(),
                traffic: Some(self.traffic),
                ..Description::default()
            },
            devices,
            sizes: self.sizes,
            preset,
            repetitions,
            only_curve: true,
            yes: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_go_one_way_or_both() {
        let rows = |matrix| match matrix {
            Matrix::Custom(rows) => rows,
            _ => panic!("rows were expected"),
        };
        assert_eq!(
            rows(pairs(2, false)),
            [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]].map(Vec::from)
        );
        assert_eq!(
            rows(pairs(2, true)),
            [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]].map(Vec::from)
        );
    }
}

use super::*;
use proptest::prelude::*;

/// Less is rounding.
const NOTHING: f64 = 1e-6;

/// A graph of boxes with up to three ports on each side, and edges between any of them.
fn graphs() -> impl Strategy<Value = (Vec<Node>, Vec<Edge>)> {
    let rank = prop_oneof![6 => Just(Rank::Free), 1 => Just(Rank::First), 1 => Just(Rank::Last)];
    let node = (10_u8..120, 0_u8..200, 1_usize..4, 1_usize..4, rank);
    let nodes = prop::collection::vec(node, 1..14).prop_map(|all| {
        let spread =
            |width: u8, n: usize| (1..=n).map(|i| f64::from(width) * i as f64 / (n + 1) as f64).collect();
        all.into_iter()
            .map(|(width, height, inputs, outputs, rank)| Node {
                width: width.into(),
                height: if rank == Rank::Free { height.into() } else { 0.0 },
                inputs: if rank == Rank::First { Vec::new() } else { spread(width, inputs) },
                outputs: if rank == Rank::Last { Vec::new() } else { spread(width, outputs) },
                rank,
            })
            .collect::<Vec<Node>>()
    });
    let end = || any::<(prop::sample::Index, prop::sample::Index)>();
    (nodes, prop::collection::vec((end(), end()), 0..30)).prop_map(|(nodes, ends)| {
        let edges = ends.iter().filter_map(|(from, to)| {
            let (a, b) = (from.0.index(nodes.len()), to.0.index(nodes.len()));
            let (outputs, inputs) = (nodes[a].outputs.len(), nodes[b].inputs.len());
            let is_possible = outputs > 0 && inputs > 0;
            is_possible.then(|| Edge { from: (a, from.1.index(outputs)), to: (b, to.1.index(inputs)) })
        });
        let edges = edges.collect();
        (nodes, edges)
    })
}

/// Points along a path, close together.
fn along(path: &Path) -> impl Iterator<Item = Point> {
    let curves =
        (0..(path.len() - 1) / 3).map(|i| [path[3 * i], path[3 * i + 1], path[3 * i + 2], path[3 * i + 3]]);
    curves.flat_map(|[a, b, c, d]| {
        (0..=20).map(move |step| {
            let t = f64::from(step) / 20.0;
            let at = |of: fn(Point) -> f64| {
                let (u, cubic) = (1.0 - t, [of(a), of(b), of(c), of(d)]);
                u * u * u * cubic[0]
                    + 3.0 * u * u * t * cubic[1]
                    + 3.0 * u * t * t * cubic[2]
                    + t * t * t * cubic[3]
            };
            (at(|p| p.0), at(|p| p.1))
        })
    })
}

fn is_within((x, y): Point, (left, top): Point, node: &Node) -> bool {
    x > left + NOTHING
        && x < left + node.width - NOTHING
        && y > top + NOTHING
        && y < top + node.height - NOTHING
}

fn node(width: f64) -> Node {
    Node { width, height: 20.0, inputs: vec![width / 2.0], outputs: vec![width / 2.0], rank: Rank::Free }
}

fn edge(from: usize, to: usize) -> Edge {
    Edge { from: (from, 0), to: (to, 0) }
}

proptest! {
    #[test]
    fn edges_lead_downwards_but_for_the_reversed((nodes, edges) in graphs()) {
        let layout = layout(&nodes, &edges);
        for (edge, reversed) in edges.iter().zip(&layout.reversed) {
            let (from, to) = (layout.corners[edge.from.0].1, layout.corners[edge.to.0].1);
            let is_above = from + nodes[edge.from.0].height < to;
            let is_right = if *reversed { to < from || edge.from.0 == edge.to.0 } else { is_above };
            prop_assert!(is_right, "{:?} {} {}", edge, from, to);
        }
    }

    #[test]
    fn what_has_no_loop_has_nothing_reversed((nodes, edges) in graphs()) {
        let edges: Vec<Edge> = edges.into_iter().filter(|e| e.from.0 < e.to.0).collect();
        prop_assert!(!layout(&nodes, &edges).reversed.contains(&true));
    }

    #[test]
    fn boxes_do_not_overlap_and_are_on_the_sheet((nodes, edges) in graphs()) {
        let layout = layout(&nodes, &edges);
        for (a, &(x, y)) in layout.corners.iter().enumerate() {
            prop_assert!(x > -NOTHING && x + nodes[a].width < layout.width + NOTHING);
            prop_assert!(y > -NOTHING && y + nodes[a].height < layout.height + NOTHING);
            for b in 0..a {
                let (u, v) = layout.corners[b];
                let apart = x + nodes[a].width < u || u + nodes[b].width < x;
                prop_assert!(apart || y + nodes[a].height <= v || v + nodes[b].height <= y, "{a} {b}");
            }
        }
    }

    #[test]
    fn paths_join_their_ports_and_cross_no_box((nodes, edges) in graphs()) {
        let layout = layout(&nodes, &edges);
        for (edge, path) in edges.iter().zip(&layout.paths) {
            let at = |node: usize, port: f64, down: f64| {
                (layout.corners[node].0 + port, layout.corners[node].1 + down)
            };
            let (from, to) = (&nodes[edge.from.0], &nodes[edge.to.0]);
            prop_assert_eq!(path[0], at(edge.from.0, from.outputs[edge.from.1], from.height));
            prop_assert_eq!(path[path.len() - 1], at(edge.to.0, to.inputs[edge.to.1], 0.0));
            for point in along(path) {
                let within = |n: &usize| is_within(point, layout.corners[*n], &nodes[*n]);
                prop_assert_eq!((0..nodes.len()).find(within), None, "{:?} {:?}", edge, point);
                prop_assert!(point.1 > -NOTHING && point.1 < layout.height + NOTHING, "{:?}", point);
            }
        }
    }

    #[test]
    fn the_same_graph_is_always_laid_out_the_same((nodes, edges) in graphs()) {
        prop_assert_eq!(layout(&nodes, &edges), layout(&nodes, &edges));
    }

    #[test]
    fn nodes_that_must_be_first_or_last_are((nodes, edges) in graphs()) {
        let layout = layout(&nodes, &edges);
        for (a, &(_, y)) in nodes.iter().zip(&layout.corners) {
            for (b, &(_, v)) in nodes.iter().zip(&layout.corners) {
                let first = a.rank == Rank::First && b.rank != Rank::First;
                let last = b.rank == Rank::Last && a.rank != Rank::Last;
                prop_assert!(!(first || last) || y < v, "{:?} {:?}", a.rank, b.rank);
            }
        }
    }
}

#[test]
fn edges_that_need_not_cross_do_not() {
    // Two chains that are declared crosswise.
    let nodes = vec![node(30.0); 6];
    let edges = [edge(0, 3), edge(1, 2), edge(2, 5), edge(3, 4)];
    let ranks = ranks::ranks(&nodes, &edges);
    let mut chains = Chains::new(&nodes, &edges, &ranks);
    order::order(&mut chains);
    assert_eq!(order::crossings(&chains), 0);
    // Three by three, each with each: nine cannot be had without nine crossings.
    let edges: Vec<Edge> = (0..3).flat_map(|a| (3..6).map(move |b| edge(a, b))).collect();
    let mut chains = Chains::new(&nodes, &edges, &ranks::ranks(&nodes, &edges));
    order::order(&mut chains);
    assert_eq!(order::crossings(&chains), 9);
}

#[test]
fn a_chain_is_straight() {
    let nodes = [node(40.0), node(90.0), node(20.0)];
    let layout = layout(&nodes, &[edge(0, 1), edge(1, 2)]);
    for path in &layout.paths {
        assert!(path.iter().all(|p| (p.0 - path[0].0).abs() < NOTHING), "{path:?}");
    }
}

#[test]
fn a_cycle_is_broken_where_packets_do_not_come_in() {
    // 3 feeds 1, of the cycle 0 -> 1 -> 2 -> 0.
    let layout = layout(&vec![node(30.0); 4], &[edge(0, 1), edge(1, 2), edge(2, 0), edge(3, 1)]);
    assert_eq!(layout.reversed, [true, false, false, false]);
}

#[test]
fn nothing_is_laid_out_as_nothing() {
    assert_eq!(layout(&[], &[]), Layout::default());
}

//! Super-packets, which the driver has in one piece, and their parts, which the interpreter has one by one.

use crate::frames;
use crate::twin::{Made, Twin, equal, look, packet_type};
use causeway_bpf::{SkbContext, TestRun, action};
use causeway_engine::ir::{Builder, Field, Test};
use causeway_fastpath::{Above, Counters, Exit, Graph, Hook, Node, Place, Target};
use causeway_packet::Packet;
use fastrand::Rng;

pub const HOOK: Hook = Hook::Tcx(Above::Graph);

/// Where the parts' payload begins.
fn headers(frame: &[u8], is_v4: bool) -> usize {
    let tcp = if is_v4 { 34 } else { 54 };
    tcp + usize::from(frame[tcp + 12] >> 4) * 4
}

fn summed(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum: u32 = header.as_chunks::<2>().0.iter().map(|&w| u32::from(u16::from_be_bytes(w))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A super-packet of TCP, whose type and length are those of the version.
fn super_packet(rng: &mut Rng) -> Vec<u8> {
    let is_v4 = rng.bool();
    let (ip, options) = (if is_v4 { 20 } else { 40 }, 4 * rng.usize(..3));
    let (tcp, payload) = (14 + ip, rng.usize(1..2_500));
    let mut frame: Vec<u8> = (0..tcp + 20 + options + payload).map(|_| rng.u8(..)).collect();
    frame[..6].copy_from_slice(&[[2, 0, 0, 0, 0, 1], frames::OURS][rng.usize(..2)]);
    frame[12..14].copy_from_slice(if is_v4 { &[8, 0] } else { &[0x86, 0xdd] });
    let length = (frame.len() - if is_v4 { 14 } else { 54 }) as u16;
    if is_v4 {
        (frame[14], frame[23]) = (0x45, 6);
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        frame[20..22].copy_from_slice(&[0x40 * rng.u8(..2), 0]);
        frame[26..30].copy_from_slice(&[10, rng.u8(..4), 0, rng.u8(..8)]);
        frame[30..34].copy_from_slice(&[10, rng.u8(..4), 3, rng.u8(..8)]);
        summed(&mut frame[14..34]);
    } else {
        (frame[14], frame[20]) = (0x60 | frame[14] & 15, 6);
        frame[18..20].copy_from_slice(&length.to_be_bytes());
    }
    frame[tcp + 12] = ((5 + options / 4) << 4) as u8;
    frame
}

/// What the kernel cuts a super-packet into, which knows the version whatever type the frame has by then. What a checksum of TCP would be is noted as the number of the part.
fn cut(whole: &[u8], luggage: usize, (gso_size, is_v4): (usize, bool)) -> Vec<Vec<u8>> {
    let (front, frame) = whole.split_at(luggage);
    let headers = headers(frame, is_v4);
    let last = (frame.len() - headers).div_ceil(gso_size) - 1;
    let tcp = if is_v4 { 34 } else { 54 };
    let part = |(n, payload): (usize, &[u8])| {
        let mut part = [&frame[..headers], payload].concat();
        let number = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four"));
        if is_v4 {
            let id = (number(18) >> 16) as u16;
            part[18..20].copy_from_slice(&id.wrapping_add(n as u16).to_be_bytes());
            part[16..18].copy_from_slice(&((headers - 14 + payload.len()) as u16).to_be_bytes());
            summed(&mut part[14..34]);
        } else {
            part[18..20].copy_from_slice(&((headers - 54 + payload.len()) as u16).to_be_bytes());
        }
        let sequence = number(tcp + 4).wrapping_add((n * gso_size) as u32);
        part[tcp + 4..tcp + 8].copy_from_slice(&sequence.to_be_bytes());
        part[tcp + 13] &= !(if n > 0 { 0x80 } else { 0 } | if n < last { 0x09 } else { 0 });
        part[tcp + 16..tcp + 18].copy_from_slice(&(n as u16).to_be_bytes());
        [front, &part].concat()
    };
    frame[headers..].chunks(gso_size).enumerate().map(part).collect()
}

/// What the programs make of the parts together.
struct All {
    packets: Vec<Packet>,
    exit: Exit,
    counted: Vec<u64>,
    edges: Vec<u64>,
}

/// What they make of them as far as the node `stop`.
fn made(twin: &mut Twin<'_>, parts: &[Vec<u8>], stop: Option<usize>) -> Result<All, String> {
    let all = parts.iter().map(|part| twin.interpret(part, stop)).collect::<Result<Vec<Made>, _>>()?;
    let sum = |of: fn(&Made) -> &Vec<u64>| {
        let add = |sum: Vec<u64>, made: &Made| -> Vec<u64> {
            sum.iter().zip(of(made)).map(|(a, b)| a.wrapping_add(*b)).collect()
        };
        all.iter().fold(vec![0; of(&all[0]).len()], add)
    };
    let (counted, edges, exit) = (sum(|made| &made.counted), sum(|made| &made.edges), all[0].exit);
    if let Some(other) = all.iter().find(|made| made.exit != exit) {
        return Err(format!("parts leave by {exit:?} and {:?}", other.exit));
    }
    Ok(All { packets: all.into_iter().map(|made| made.packet).collect(), exit, counted, edges })
}

/// Compares what the driver does with some super-packet with what the programs make of its parts; says by which exit it left.
pub fn compare(twin: &mut Twin<'_>, rng: &mut Rng) -> Result<Exit, String> {
    let (frame, gso_size) = (super_packet(rng), rng.usize(400..1_500));
    compare_one(twin, &frame, gso_size).map_err(|why| format!("{why}\n{gso_size} of {frame:02x?}"))
}

fn compare_one(twin: &mut Twin<'_>, frame: &[u8], gso_size: usize) -> Result<Exit, String> {
    let context = SkbContext { gso_size: gso_size as u32, ..SkbContext::default() };
    let before = twin.counted();
    let run = twin.program.test_run_at_tcx(frame, context).map_err(|e| e.to_string())?;
    let more: Vec<u64> = twin.counted().iter().zip(&before).map(|(a, b)| a.wrapping_sub(*b)).collect();
    let way = (0..twin.compiled.exits.len()).find(|way| more[twin.compiled.first_exit + way] > 0);
    let left = Left { way: way.ok_or("it left nowhere")?, run, more };
    let how = (gso_size, frame[12] == 8);
    let parts = cut(frame, 0, how);
    let exit = twin.compiled.exits[left.way];
    // Packets may go up at a node for what they differ in, which the programs do not say.
    let done = is_same(twin, (frame, &parts, how), &left, None);
    match exit {
        Exit::Up(Place::Node(node)) if done.is_err() => {
            is_same(twin, (frame, &parts, how), &left, Some(node))?;
        }
        _ => done?,
    }
    Ok(exit)
}

/// How the driver left a super-packet.
struct Left {
    way: usize,
    run: TestRun,
    /// All that was counted.
    more: Vec<u64>,
}

fn is_same(
    twin: &mut Twin<'_>,
    (frame, parts, how): (&[u8], &[Vec<u8>], (usize, bool)),
    left: &Left,
    stop: Option<usize>,
) -> Result<(), String> {
    let Left { way, run, more } = left;
    let (way, exit) = (*way, twin.compiled.exits[*way]);
    let (inside, ways) = more.split_at(twin.compiled.first_exit);
    let (by_elements, edges) = inside.split_at(twin.compiled.edge_counters[0]);
    let All { packets, exit: expected, counted, edges: by_edges } = made(twin, parts, stop)?;
    let to_its_port = matches!((expected, exit), (Exit::Emit(a), Exit::Up(Place::Port(b))) if a == b);
    if expected != exit && !to_its_port {
        return Err(format!("left by {exit:?} and not by {expected:?}"));
    }
    equal(&by_elements, &&counted[..], "counts")?;
    equal(&edges, &&by_edges[..], "edges")?;
    match exit {
        Exit::Emit(_) => {
            equal(&ways[way], &(parts.len() as u64), "packets that left")?;
            let bytes: Vec<_> = packets.iter().map(|packet| packet.data().to_vec()).collect();
            equal(&cut(&run.data, 0, how), &bytes, "what left")
        }
        Exit::Up(place) => {
            let luggage = twin.compiled.luggage[way].as_ref().ok_or("no luggage")?.len();
            let came = packet_type(frame, HOOK);
            for (part, (packet, bytes)) in parts.iter().zip(packets.iter().zip(cut(&run.data, luggage, how)))
            {
                let headroom = Packet::from_bytes(part).ok_or("no packet")?.headroom();
                let expected = look(packet, headroom);
                let arrived = twin.arrival(way, &bytes, came)?;
                match place {
                    Place::Port(_) => equal(&arrived.bytes, &expected.bytes, "what goes up")?,
                    _ => equal(&arrived, &expected, "what goes up")?,
                }
            }
            Ok(())
        }
        _ => equal(&run.verdict, &action::TCX_DROP, "verdict"),
    }
}

/// Where all parts are short it is known of all.
#[test]
fn lengths_of_parts_are_told_by_the_longest() {
    if !crate::is_root() {
        return;
    }
    let (mut short, mut up) = (0, 0);
    for seed in 0..40 {
        let rng = &mut Rng::with_seed(seed);
        let mut b = Builder::new();
        let (yes, no) = (b.block(), b.block());
        let length = b.get(Field::Length);
        b.branch(Test::Above(length.into(), rng.u64(300..1_800).into()), yes, no);
        b.at(yes);
        b.leave(1);
        b.at(no);
        b.leave(0);
        let outputs = vec![Some(Target::Emit(0)), Some(Target::Emit(1))];
        let node = Node { name: "long".to_owned(), program: b.finish(), tables: Vec::new(), outputs };
        let shared = Counters::new().expect("counters").with_bytes();
        let mut twin = Twin::new(Graph { nodes: vec![node] }, &shared, 2, HOOK);
        for _ in 0..20 {
            match compare(&mut twin, rng).unwrap_or_else(|why| panic!("seed {seed}: {why}")) {
                Exit::Emit(0) => short += 1,
                Exit::Up(Place::Node(0)) => up += 1,
                other => panic!("left by {other:?}"),
            }
        }
    }
    assert!(short > 200 && up > 200, "{short} were short, {up} went up");
}

//! Packets of the stack that are longer than any interface takes, and are to be cut into others.

use super::*;

/// Octets of a super-packet, from the IP header on.
const LEN: usize = 3_000;

/// The frame's IP packet with more behind it.
fn grown(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame.resize(14 + LEN, 0);
    if frame[12] == 0x86 {
        frame[18..20].copy_from_slice(&(LEN as u16 - 40).to_be_bytes());
        return frame;
    }
    frame[16..18].copy_from_slice(&(LEN as u16).to_be_bytes());
    frame[24..26].fill(0);
    let words = frame[14..34].as_chunks::<2>().0.iter();
    let sum = words.map(|&w| u32::from(u16::from_be_bytes(w))).sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

impl Router {
    /// The largest packet of the next hop that an IPv4 packet in a frame is to.
    fn largest(&self, frame: &[u8]) -> Option<u32> {
        let to = frame.get(30..34).filter(|_| frame[12..14] == [8, 0])?;
        let (_, index) = self.fib.rib().longest(u32::from_be_bytes([to[0], to[1], to[2], to[3]]))?;
        Some(self.neighbours.next_hop(index)?.mtu_bytes)
    }
}

#[test]
fn a_super_packet_leaves_whole_if_what_it_is_to_be_cut_into_fits() {
    if !crate::is_root() {
        return;
    }
    let rng = &mut Rng::with_seed(7);
    let router = Router::new(rng, 100);
    router.set_policy(PortPolicy { ipv4: true, ipv6: true, reverse_path: ReversePath::Off, hairpin: true });
    router.forwarding.set_flow_hash((1, 0x37), (0, 0), 1);
    let counters = Counters::new().expect("counters");
    let (compiled, _) = router.compiled(Hook::Tcx(Above::Kernel), &counters);
    let program = compiled.load(Hook::Tcx(Above::Kernel), "reference").expect("loaded");
    let [forwarded, up] = verdicts(Hook::Tcx(Above::Kernel));
    let mut sent = [0; 2];
    for _ in 0..crate::frames_wanted(4_000) {
        let frame = frame(rng);
        if frame.len() < 54 || run_at_tcx(&program, &frame, 0).verdict != forwarded {
            continue;
        }
        let whole = grown(&frame);
        assert_eq!(run_at_tcx(&program, &whole, 0).verdict, up, "too long as it is: {frame:02x?}");
        let run = run_at_tcx(&program, &whole, 40);
        assert_eq!(run.verdict, forwarded, "{frame:02x?}");
        assert_eq!(run.data.len(), whole.len());
        assert_eq!(run.data[34..], whole[34..], "nothing else is changed");
        sent[usize::from(frame[12] == 0x86)] += 1;
        let run = run_at_tcx(&program, &whole, 1_501);
        assert_eq!((run.verdict, &run.data[..]), (up, &whole[..]), "{frame:02x?}");
        for len in [41, 1_280, 1_281, 1_500] {
            let Some(most) = router.largest(&frame) else { continue };
            let way = if len <= most { forwarded } else { up };
            assert_eq!(run_at_tcx(&program, &whole, len).verdict, way, "{len} of {most}: {frame:02x?}");
        }
    }
    assert!(sent.iter().all(|&n| n > 20), "{sent:?}");
}

/// As many frames leave as it is to be cut into, each with its headers.
#[test]
fn a_super_packet_counts_as_the_frames_that_leave() {
    if !crate::is_root() {
        return;
    }
    const PAYLOAD: u32 = 1_000;
    let rng = &mut Rng::with_seed(9);
    let router = Router::new(rng, 100);
    router.set_policy(PortPolicy { ipv4: true, ipv6: true, reverse_path: ReversePath::Off, hairpin: true });
    router.forwarding.set_flow_hash((1, 0x37), (0, 0), 1);
    let counters = Counters::new().expect("counters").with_bytes();
    let (compiled, _) = router.compiled(Hook::Tcx(Above::Kernel), &counters);
    let program = compiled.load(Hook::Tcx(Above::Kernel), "reference").expect("loaded");
    let [forwarded, _] = verdicts(Hook::Tcx(Above::Kernel));
    let counts = || {
        let sum = |counter: fn(usize) -> usize| -> u64 {
            (0..compiled.exits.len()).map(|exit| counters.get(counter(exit))).sum()
        };
        [sum(Compiled::bytes_of_exit), sum(Compiled::more_frames_of_exit)]
    };
    let mut sent = 0;
    for _ in 0..crate::frames_wanted(2_000) {
        let frame = frame(rng);
        if frame.len() < 54 || run_at_tcx(&program, &frame, 0).verdict != forwarded {
            continue;
        }
        let frame = grown(&frame);
        // Headers of the IP packets, and how many frames their payload makes.
        for (headers, frames) in [(40, 3), (1_000, 2), (1_001, 2)] {
            let context = SkbContext { gso_size: PAYLOAD, cb: headers + PAYLOAD, ..SkbContext::default() };
            let before = counts();
            let run = program.test_run_at_tcx(&frame, context).expect("run");
            if run.verdict != forwarded {
                // What it is cut into is longer than the next hop takes.
                assert_eq!(counts(), before);
                continue;
            }
            let more = [0, 1].map(|i| counts()[i] - before[i]);
            let bytes = frame.len() as u64 + (frames - 1) * u64::from(14 + headers);
            assert_eq!(more, [bytes, frames - 1], "{headers}");
            sent += 1;
        }
        let before = counts();
        assert_eq!(run_at_tcx(&program, &frame, 40).verdict, forwarded);
        assert_eq!([0, 1].map(|i| counts()[i] - before[i]), [frame.len() as u64, 0], "it is not to be cut");
    }
    assert!(sent > 20, "{sent}");
}

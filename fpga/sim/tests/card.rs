//! One or two cards frame by frame: bad frames, disconnects, registers; and the input processing against the golden
//! model on a million frames.

use causeway_nic_driver::corpus::{self, Random};
use causeway_nic_driver::golden::{process, process_reaching};
use causeway_nic_driver::registers as reg;
use causeway_nic_driver::{DropReason, RuleTable, Verdict};
use causeway_nic_sim::gmii::check_sequence;
use causeway_nic_sim::models::{AsyncFifo, InputProcessing};
use causeway_nic_sim::scenario::{read_counters, table};
use causeway_nic_sim::testbed::{Setup, Testbed};
use causeway_nic_sim::traffic::Stamp;

fn testbed(cards: usize, registers: &[reg::Write]) -> (Testbed, RuleTable) {
    let table = table(cards, true, false).unwrap();
    let setup = Setup { registers: registers.to_vec(), seed: 7, ..Setup::new(&table) };
    (Testbed::new(&setup), table)
}

fn counter(counters: &[(String, u64)], name: &str) -> u64 {
    counters.iter().find(|c| c.0 == name).unwrap().1
}

fn stamp(sequence: u32, frame_bytes: u16) -> Stamp {
    Stamp { port: 0, dest: 1, high: false, sequence, sent_ns: 0, frame_bytes }
}

/// The bytes of a frame on the line after the start-of-frame delimiter.
fn with_fcs(frame: &[u8], fcs: u32) -> Vec<u8> {
    [frame, &fcs.to_le_bytes()].concat()
}

/// Preamble, delimiter and bytes.
fn line(bytes: &[u8]) -> Vec<u8> {
    [&[0x55; 7], &[0xd5][..], bytes].concat()
}

#[test]
fn bad_frames_are_dropped_and_counted_by_reason() {
    let (mut testbed, table) = testbed(2, &[]);
    let good = stamp(1, 64).frame(table.nics[0]);
    let whole = |frame: &[u8]| with_fcs(frame, check_sequence(frame));
    let mut expired = good.clone();
    expired[22] = 1;
    expired[24..26].fill(0);
    let checksum = !causeway_nic_driver::golden::ones_complement_sum(&expired[14..34]);
    expired[24..26].copy_from_slice(&checksum.to_be_bytes());
    let mut truncated = stamp(1, 100).frame(table.nics[0]);
    truncated.truncate(80);
    let tagged = |bytes: usize| [&good[..12], &[0x81, 0, 0, 5], &vec![7; bytes - 16]].concat();
    let lines = [
        (line(&with_fcs(&good, check_sequence(&good) ^ 1)), None),
        (line(&whole(&good)), Some(40)),
        // One byte too short, and the shortest lengths there are.
        (line(&whole(&good[..59])), None),
        (line(&whole(&[0; 3])), None),
        (line(&[0xaa]), None),
        (line(&[]), None),
        // One byte too long, without and with a tag; the longest with a tag is not.
        (line(&whole(&stamp(1, 1519).frame(table.nics[0]))), None),
        (line(&whole(&tagged(1519))), None),
        (line(&whole(&tagged(1518))), None),
        (line(&whole(&expired)), None),
        (line(&whole(&truncated)), None),
        // Preamble without end, no delimiter, a wrong one.
        (vec![0x55; 90], None),
        ([&[0x55; 7], &[0x5d][..], &whole(&good)].concat(), None),
        (vec![0x12, 0xd5, 0x55, 0xd5], None),
        (line(&whole(&good)), None),
    ];
    for (bytes, error_at) in lines {
        testbed.transmitter(0).send_line(bytes, error_at, 80);
    }
    testbed.drain(2_000_000);
    let counters = read_counters(&mut testbed, 0);
    let expected = [
        ("rx_bad_fcs", 2),
        ("rx_bad_length", 6),
        ("rx_no_sfd", 3),
        ("rx_crowded", 0),
        ("drop_ttl", 1),
        ("drop_truncated", 1),
        ("rx_fast", 1),
        ("rx_frames", 12),
        ("rx_slow", 1),
    ];
    for (name, value) in expected {
        assert_eq!(counter(&counters, name), value, "{name} in {counters:?}");
    }
    let mut forwarded = good;
    process(&table, 0, &mut forwarded);
    assert_eq!(testbed.raw, vec![(1, forwarded)]);
}

#[test]
fn frames_crowded_together_are_counted_and_those_after_them_kept() {
    let (mut testbed, table) = testbed(2, &[]);
    let frame = |n| stamp(n, 64).frame(table.nics[0]);
    let bytes = |n| with_fcs(&frame(n), check_sequence(&frame(n)));
    for round in 0..50 {
        // Gaps of four byte times and no preamble, where twelve and eight are due.
        for n in 0..3 {
            testbed.transmitter(0).send_line([&[0xd5][..], &bytes(4 * round + n)].concat(), None, 4);
        }
        testbed.transmitter(0).send_line(vec![0xd5, 0x33], None, 80);
        testbed.transmitter(0).send_line(line(&bytes(4 * round + 3)), None, 12);
    }
    testbed.drain(2_000_000);
    let counters = read_counters(&mut testbed, 0);
    let (frames, crowded) = (counter(&counters, "rx_frames"), counter(&counters, "rx_crowded"));
    // The second and the fourth of each round began too early.
    assert_eq!((frames, crowded), (150, 100), "{counters:?}");
    assert_eq!(counter(&counters, "rx_fast"), 150);
    let mut sent: Vec<Vec<u8>> = (0..200).filter(|n| n % 4 != 1).map(frame).collect();
    sent.iter_mut().for_each(|frame| assert!(matches!(process(&table, 0, frame), Verdict::Fast { .. })));
    let seen: Vec<Vec<u8>> = testbed.raw.iter().map(|raw| raw.1.clone()).collect();
    assert_eq!(seen, sent);
}

#[test]
fn frames_of_the_host_leave_padded() {
    let (mut testbed, _) = testbed(2, &[]);
    for bytes in [14, 20, 59, 60, 61] {
        testbed.host_mut().write(1, reg::TX_POST, bytes << 32);
    }
    testbed.drain(2_000_000);
    let lengths: Vec<usize> = testbed.raw.iter().map(|raw| raw.1.len()).collect();
    assert_eq!(lengths, [60, 60, 60, 60, 61]);
}

#[test]
fn messages_are_counted_where_they_are_sent() {
    let (mut testbed, table) = testbed(2, &[]);
    let frame = stamp(1, 64).frame(table.nics[0]);
    testbed.send_raw(0, &frame, check_sequence(&frame));
    testbed.drain(2_000_000);
    let [from, to] = [0, 1].map(|nic| read_counters(&mut testbed, nic));
    for (name, values) in [
        ("req_sent", [1, 0]),
        ("res_sent", [0, 1]),
        ("bursts_sent", [1, 0]),
        ("bursts_empty", [0, 0]),
        ("rx_frames", [1, 0]),
        ("tx_fast", [0, 1]),
        ("tx_frames", [0, 1]),
        ("tx_slow", [0, 0]),
    ] {
        assert_eq!([counter(&from, name), counter(&to, name)], values, "{name}");
    }
}

#[test]
fn what_is_written_is_read_back_and_the_rest_told() {
    let (mut testbed, table) = testbed(3, &[]);
    for nic in 0..3 {
        assert_eq!(testbed.read_register(nic, reg::ID), reg::ID_VALUE);
        assert_eq!(testbed.read_register(nic, reg::RULES) & 3, 1);
        for (register, value) in reg::compile(&table, nic) {
            // The commit is an order; a router of three has no class rules for cards beyond the fourth.
            if register != reg::RULES
                && !(reg::CLASS + 4 * reg::ENTRY_STRIDE..reg::COUNTERS).contains(&register)
            {
                assert_eq!(testbed.read_register(nic, register), value, "{register:x} of {nic}");
            }
        }
    }
    let words = 1_920;
    let parameters = words << 32 | words << 16 | (reg::ROUTES as u64) << 8 | 4;
    assert_eq!(testbed.read_register(0, reg::PARAMETERS), parameters);
}

#[test]
fn short_payloads_leave_padded_and_long_ones_whole() {
    let (mut testbed, table) = testbed(2, &[]);
    let frames: Vec<Vec<u8>> =
        (64..=1518).step_by(101).map(|n| stamp(n.into(), n).frame(table.nics[0])).collect();
    for frame in &frames {
        testbed.send_raw(0, frame, check_sequence(frame));
    }
    testbed.drain(2_000_000);
    let expected: Vec<(u8, Vec<u8>)> = frames
        .into_iter()
        .map(|mut frame| {
            process(&table, 0, &mut frame);
            (1, frame)
        })
        .collect();
    assert_eq!(testbed.raw, expected);
}

#[test]
fn disconnects_at_every_boundary_change_nothing() {
    let (mut testbed, table) = testbed(2, &[]);
    for nic in 0..2 {
        testbed.host_mut().write(nic, reg::CONTROL, reg::CONTROL_ENABLE | reg::CONTROL_DISCONNECT);
    }
    testbed.drain(10_000);
    let frames: Vec<Vec<u8>> = (0..8).map(|n| stamp(n, 1500 + n as u16).frame(table.nics[0])).collect();
    for frame in &frames {
        testbed.send_raw(0, frame, check_sequence(frame));
    }
    testbed.drain(2_000_000);
    assert_eq!(testbed.raw.len(), frames.len());
    for ((_, seen), mut frame) in testbed.raw.clone().into_iter().zip(frames) {
        process(&table, 0, &mut frame);
        assert_eq!(seen, frame);
    }
    let counters = read_counters(&mut testbed, 0);
    assert!(counter(&counters, "bus_disconnects") > 50, "{counters:?}");
}

/// Drives `input_processing` word by word.
struct Processor {
    model: InputProcessing,
    events: [u64; 10],
    out: Vec<u8>,
    done: Vec<(u64, u64, Vec<u8>)>,
}

impl Processor {
    fn new(table: &RuleTable, nic: u8, up: u8) -> Self {
        let mut model = InputProcessing::new(3);
        model.set_own_id(nic.into());
        model.set_own_mac(table.nics[usize::from(nic)].to_register());
        model.set_up(u64::from(up) & 0xf);
        model.set_s_axis_tvalid(0);
        model.set_wr_rule(0);
        model.set_wr_policy(0);
        model.set_wr_commit(0);
        model.set_rd_rule(0);
        model.set_rst(1);
        let mut processor = Self { model, events: [0; 10], out: Vec::new(), done: Vec::new() };
        processor.clock();
        processor.clock();
        processor.model.set_rst(0);
        processor.load(table, nic);
        // A stream begins a cycle after reset at the earliest.
        processor.clock();
        (processor.events, processor.out) = ([0; 10], Vec::new());
        processor
    }

    fn load(&mut self, table: &RuleTable, nic: u8) {
        for (register, value) in reg::rules(table, nic) {
            self.model.set_wr_data(value);
            self.model.set_wr_word(u64::from(register - reg::ROUTE.min(register)) / 8);
            self.model.set_wr_rule(u64::from(register >= reg::ROUTE));
            self.model.set_wr_policy(u64::from(register == reg::POLICY));
            self.model.set_wr_commit(u64::from(register == reg::RULES));
            self.clock();
        }
        self.model.set_wr_rule(0);
        self.model.set_wr_policy(0);
        self.model.set_wr_commit(0);
        self.clock();
    }

    fn clock(&mut self) {
        self.model.set_clk(0);
        self.model.eval();
        self.model.set_clk(1);
        self.model.eval();
        let events = self.model.events();
        for (bit, count) in self.events.iter_mut().enumerate() {
            *count += events >> bit & 1;
        }
        if self.model.m_axis_tvalid() == 1 {
            let bytes = self.model.m_axis_tkeep().count_ones() as usize;
            self.out.extend_from_slice(&self.model.m_axis_tdata().to_le_bytes()[..bytes]);
            if self.model.m_axis_tlast() == 1 {
                let frame = std::mem::take(&mut self.out);
                if self.model.m_axis_tuser() == 0 {
                    self.done.push((self.model.m_axis_tdest(), self.model.m_axis_thigh(), frame));
                }
            }
        }
    }

    fn feed(&mut self, frame: &[u8], random: &mut Random) {
        let words = frame.len().div_ceil(8);
        let mut cycles = 0;
        for (i, chunk) in frame.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.model.set_s_axis_tdata(u64::from_le_bytes(word));
            self.model.set_s_axis_tkeep(0xff >> (8 - chunk.len()));
            self.model.set_s_axis_tlast(u64::from(i + 1 == words));
            self.model.set_s_axis_tuser(0);
            self.model.set_s_axis_tvalid(1);
            self.clock();
            self.model.set_s_axis_tvalid(0);
            // The MAC gives a word every 64 ns, in groups when the clock crossing lets some gather.
            let pause = random.below(5);
            (0..pause).for_each(|_| self.clock());
            cycles += 1 + pause;
        }
        // The gap; and no two frames begin closer than the MAC lets them.
        let pause = (8 + random.below(8)).max(38u64.saturating_sub(cycles));
        (0..pause).for_each(|_| self.clock());
    }
}

/// A million frames at `--release`; fewer without optimisation.
fn corpus_agrees(table: &RuleTable, nic: u8, up: u8, count: usize) {
    let mut processor = Processor::new(table, nic, up);
    let mut random = Random::new(9);
    let mut expected_events = [0u64; 10];
    let mut expected = Vec::new();
    for (number, frame) in corpus::frames(u64::from(nic) + 11).take(count).enumerate() {
        processor.feed(&frame, &mut random);
        let mut frame = frame;
        let verdict = process_reaching(table, nic, up, &mut frame);
        expected_events[0] += 1;
        let event = match verdict {
            Verdict::Drop(DropReason::TtlExpired) => 4,
            Verdict::Drop(DropReason::BadChecksum) => 5,
            Verdict::Drop(DropReason::Truncated) => 6,
            Verdict::Fast { .. } => 7,
            Verdict::Slow { .. } => 8,
        };
        expected_events[event] += 1;
        match verdict {
            Verdict::Fast { nic, high } => expected.push((nic.into(), high.into(), frame)),
            Verdict::Slow { high } => expected.push((nic.into(), high.into(), frame)),
            Verdict::Drop(_) => {}
        }
        if number % 1000 == 999 || number + 1 == count {
            for _ in 0..600 {
                processor.clock();
            }
            assert_eq!(processor.done.len(), expected.len());
            for (seen, expected) in processor.done.drain(..).zip(expected.drain(..)) {
                assert_eq!(seen, expected);
            }
            // The last one counts what an unreachable card has cost, which the golden model does not tell apart.
            assert_eq!(processor.events[..9], expected_events[..9]);
            assert_eq!(processor.events[9] == 0, up == u8::MAX);
        }
    }
}

#[test]
fn a_million_frames_come_out_as_the_golden_model_says() {
    let count = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    corpus_agrees(&corpus::table(), 0, u8::MAX, count);
}

#[test]
fn what_is_for_a_card_that_is_down_takes_the_slow_path() {
    corpus_agrees(&corpus::table(), 0, 0b1011, 20_000);
}

#[test]
fn every_policy_card_and_shape_of_rule_agrees_too() {
    for setup in corpus::setups() {
        corpus_agrees(&setup.table, setup.nic, u8::MAX, 20_000);
    }
}

#[test]
fn the_clock_crossing_keeps_every_word_at_any_ratio_and_phase() {
    let mut random = Random::new(5);
    for (wr_ps, rd_ps) in
        [(8_000, 15_000), (15_000, 8_000), (10_000, 10_000), (10_000, 10_007), (3_000, 31_000)]
    {
        let mut fifo = AsyncFifo::new(1);
        let mut next = [1_000 + random.below(wr_ps), 1_000 + random.below(rd_ps)];
        let (mut written, mut read) = (0u64, 0u64);
        fifo.set_wr_en(0);
        fifo.set_rd_en(0);
        fifo.set_wr_rst(1);
        fifo.set_rd_rst(1);
        let mut edges = 0;
        while read < 5_000 {
            let writes = next[0] <= next[1];
            let in_reset = edges < 50;
            fifo.set_wr_rst(in_reset.into());
            fifo.set_rd_rst(in_reset.into());
            if writes {
                let wants = !in_reset && random.below(4) != 0 && fifo.wr_full() == 0;
                fifo.set_wr_en(wants.into());
                fifo.set_wr_data(written);
                written += u64::from(wants);
                fifo.set_wr_clk(1);
                next[0] += wr_ps;
            } else {
                let takes = !in_reset && random.below(3) != 0 && fifo.rd_valid() == 1;
                if takes {
                    assert_eq!(fifo.rd_data(), read);
                    read += 1;
                }
                fifo.set_rd_en(takes.into());
                fifo.set_rd_clk(1);
                next[1] += rd_ps;
            }
            fifo.eval();
            fifo.set_wr_clk(0);
            fifo.set_rd_clk(0);
            fifo.eval();
            edges += 1;
        }
    }
}

//! One or two cards frame by frame: bad frames, disconnects, registers; and the input processing against the golden
//! model on a million frames.

use causeway_nic_driver::corpus::{self, Random};
use causeway_nic_driver::golden::process;
use causeway_nic_driver::registers as reg;
use causeway_nic_driver::{DropReason, RuleTable, Verdict};
use causeway_nic_sim::gmii::check_sequence;
use causeway_nic_sim::host::HostParameters;
use causeway_nic_sim::models::{AsyncFifo, InputProcessing};
use causeway_nic_sim::scenario::{read_counters, table};
use causeway_nic_sim::testbed::{Setup, Testbed};
use causeway_nic_sim::traffic::Stamp;

fn testbed(cards: usize, control: u64) -> (Testbed, RuleTable) {
    let table = table(cards, true, false).unwrap();
    let setup = Setup {
        table: table.clone(),
        host_table: table.clone(),
        host: HostParameters::default(),
        bus_extra_cycles: 5,
        grant_min_words: 0,
        control,
        seed: 7,
    };
    (Testbed::new(&setup), table)
}

fn counter(counters: &[(String, u64)], name: &str) -> u64 {
    counters.iter().find(|c| c.0 == name).unwrap().1
}

fn stamp(sequence: u32, frame_bytes: u16) -> Stamp {
    Stamp { port: 0, dest: 1, high: false, sequence, sent_ns: 0, frame_bytes }
}

#[test]
fn bad_frames_are_dropped_and_counted_by_reason() {
    let (mut testbed, table) = testbed(2, 0);
    let good = stamp(1, 64).frame(table.nics[0]);
    let mut expired = good.clone();
    expired[22] = 1;
    expired[24..26].fill(0);
    let checksum = !causeway_nic_driver::golden::ones_complement_sum(&expired[14..34]);
    expired[24..26].copy_from_slice(&checksum.to_be_bytes());
    let mut truncated = stamp(1, 100).frame(table.nics[0]);
    truncated.truncate(80);
    testbed.send_raw(0, &good, check_sequence(&good) ^ 1);
    testbed.send_raw(0, &good[..50], check_sequence(&good[..50]));
    testbed.send_raw(0, &[0; 3], 0);
    let long = stamp(1, 1600).frame(table.nics[0]);
    testbed.send_raw(0, &long, check_sequence(&long));
    testbed.send_raw(0, &expired, check_sequence(&expired));
    testbed.send_raw(0, &truncated, check_sequence(&truncated));
    testbed.send_raw(0, &good, check_sequence(&good));
    testbed.drain(2_000_000);
    let counters = read_counters(&mut testbed, 0);
    let expected = [
        ("rx_bad_fcs", 1),
        ("rx_bad_length", 3),
        ("drop_ttl", 1),
        ("drop_truncated", 1),
        ("rx_fast", 1),
        ("rx_frames", 7),
        ("rx_slow", 0),
    ];
    for (name, value) in expected {
        assert_eq!(counter(&counters, name), value, "{name} in {counters:?}");
    }
    let mut forwarded = good;
    process(&table, 0, &mut forwarded);
    assert_eq!(testbed.raw, vec![(1, forwarded)]);
}

#[test]
fn short_payloads_leave_padded_and_long_ones_whole() {
    let (mut testbed, table) = testbed(2, 0);
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
    let (mut testbed, table) = testbed(2, reg::CONTROL_DISCONNECT);
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

#[test]
fn identity_and_control_are_read_back() {
    let (mut testbed, _) = testbed(3, 0);
    for nic in 0..3 {
        assert_eq!(testbed.read_register(nic, reg::ID), reg::ID_VALUE);
        assert_eq!(
            testbed.read_register(nic, reg::CONTROL),
            reg::CONTROL_ENABLE | reg::CONTROL_WRITE_SOURCE_MAC
        );
    }
}

#[test]
fn the_register_map_is_the_same_on_both_sides() {
    let package = include_str!("../../rtl/nic_pkg.sv");
    let hardware = |name: &str| {
        let line =
            package.lines().find(|l| l.contains(&format!(" {name} = "))).unwrap_or_else(|| panic!("{name}"));
        let value = line.split('=').nth(1).unwrap().split(';').next().unwrap().trim();
        match value.split_once("'h") {
            Some((_, hex)) => u64::from_str_radix(&hex.replace('_', ""), 16).unwrap(),
            None => value.parse().unwrap(),
        }
    };
    let registers = [
        ("REG_ID", reg::ID),
        ("REG_CONTROL", reg::CONTROL),
        ("REG_OWN_ID", reg::OWN_ID),
        ("REG_OWN_MAC", reg::OWN_MAC),
        ("REG_GRANT_MIN_WORDS", reg::GRANT_MIN_WORDS),
        ("REG_IRQ_ENABLE", reg::IRQ_ENABLE),
        ("REG_RX_DESC_BASE", reg::RX_DESC_BASE),
        ("REG_RX_BUFFER_BASE", reg::RX_BUFFER_BASE),
        ("REG_RX_TAIL", reg::RX_TAIL),
        ("REG_RX_RING_STRIDE", reg::RX_RING_STRIDE),
        ("REG_TX_POST", reg::TX_POST),
        ("REG_TX_DONE_ADDRESS", reg::TX_DONE_ADDRESS),
        ("REG_PEER_BASE", reg::PEER_BASE),
        ("REG_ROUTE", reg::ROUTE),
        ("REG_CLASS", reg::CLASS),
        ("REG_COUNTERS", reg::COUNTERS),
    ];
    for (name, register) in registers {
        assert_eq!(hardware(name), u64::from(register), "{name}");
    }
    assert_eq!(hardware("ID_VALUE"), reg::ID_VALUE);
    for (index, name) in reg::COUNTER_NAMES.iter().enumerate() {
        assert_eq!(hardware(&format!("EV_{}", name.to_uppercase())), index as u64, "{name}");
    }
    assert_eq!(hardware("EV_DROP_FIFO"), reg::COUNTER_NAMES.len() as u64);
}

/// Drives `input_processing` word by word; the next-hop memory beside it is kept here.
struct Processor {
    model: InputProcessing,
    macs: Vec<u64>,
    events: [u64; 8],
    out: Vec<u8>,
    done: Vec<(u64, u64, Vec<u8>)>,
}

impl Processor {
    fn new(table: &RuleTable, nic: u8) -> Self {
        let mut model = InputProcessing::new(3);
        let mut macs = vec![0; 8];
        let (mut valid, mut nics, mut enable) = (0, 0, 0);
        for (i, route) in table.routes.iter().enumerate() {
            model.set_route_value(i, route.value.into());
            model.set_route_mask(i, route.mask.into());
            valid |= 1 << i;
            nics |= u64::from(route.nic) << (3 * i);
            macs[2 * i] = route.next_hop.to_register();
            macs[2 * i + 1] = table.nics[usize::from(route.nic)].to_register();
        }
        let mut rules = [[0u32; 10]; 2];
        for destination in 0..4 {
            let own = destination == usize::from(nic);
            let Some(rule) = (if own { table.host_class } else { table.classes[destination] }) else {
                continue;
            };
            enable |= 1 << destination;
            for (words, bits) in rules.iter_mut().zip([rule.value.0, rule.mask.0]) {
                for bit in 0..80 {
                    let at = 80 * destination + bit;
                    words[at / 32] |= ((bits >> bit & 1) as u32) << (at % 32);
                }
            }
        }
        for (word, (value, mask)) in rules[0].into_iter().zip(rules[1]).enumerate() {
            model.set_class_value(word, value.into());
            model.set_class_mask(word, mask.into());
        }
        model.set_class_enable(enable);
        model.set_route_valid(valid);
        model.set_route_nic(nics);
        model.set_own_id(nic.into());
        model.set_own_mac(table.nics[usize::from(nic)].to_register());
        model.set_write_source_mac(u64::from(!table.policy.keep_source_mac));
        model.set_drop_bad_checksum(table.policy.drop_bad_checksum.into());
        model.set_ttl_to_host(table.policy.ttl_expired_to_host.into());
        model.set_s_axis_tvalid(0);
        model.set_rst(1);
        let mut processor = Self { model, macs, events: [0; 8], out: Vec::new(), done: Vec::new() };
        processor.clock();
        processor.clock();
        processor.model.set_rst(0);
        // A stream begins a cycle after reset at the earliest.
        processor.clock();
        (processor.events, processor.out) = ([0; 8], Vec::new());
        processor
    }

    fn clock(&mut self) {
        let address = self.model.mac_addr() as usize;
        self.model.set_clk(0);
        self.model.eval();
        self.model.set_clk(1);
        self.model.eval();
        self.model.set_mac_data(self.macs[address]);
        let events = self.model.events();
        for (bit, count) in self.events.iter_mut().enumerate() {
            *count += events >> bit & 1;
        }
        if self.model.m_axis_tvalid() == 1 {
            let bytes = self.model.m_axis_tbytes() as usize + 1;
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
        for (i, chunk) in frame.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.model.set_s_axis_tdata(u64::from_le_bytes(word));
            self.model.set_s_axis_tbytes(chunk.len() as u64 - 1);
            self.model.set_s_axis_tlast(u64::from(i + 1 == words));
            self.model.set_s_axis_tuser(0);
            self.model.set_s_axis_tvalid(1);
            self.clock();
            self.model.set_s_axis_tvalid(0);
            // The MAC gives a word every 64 ns, in groups when the clock crossing lets some gather.
            for _ in 0..random.below(5) {
                self.clock();
            }
        }
        for _ in 0..4 + random.below(8) {
            self.clock();
        }
    }
}

/// A million frames at `--release`; fewer without optimisation.
fn corpus_agrees(table: &RuleTable, nic: u8, count: usize) {
    let mut processor = Processor::new(table, nic);
    let mut random = Random::new(9);
    let mut expected_events = [0u64; 8];
    let mut expected = Vec::new();
    for (number, frame) in corpus::frames(u64::from(nic) + 11).take(count).enumerate() {
        processor.feed(&frame, &mut random);
        let mut frame = frame;
        let verdict = process(table, nic, &mut frame);
        expected_events[0] += 1;
        let event = match verdict {
            Verdict::Drop(DropReason::TtlExpired) => 3,
            Verdict::Drop(DropReason::BadChecksum) => 4,
            Verdict::Drop(DropReason::Truncated) => 5,
            Verdict::Fast { .. } => 6,
            Verdict::Slow { .. } => 7,
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
            assert_eq!(processor.events, expected_events);
        }
    }
}

#[test]
fn a_million_frames_come_out_as_the_golden_model_says() {
    let count = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    corpus_agrees(&corpus::table(), 0, count);
}

#[test]
fn every_policy_card_and_shape_of_rule_agrees_too() {
    for setup in corpus::setups() {
        corpus_agrees(&setup.table, setup.nic, 20_000);
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

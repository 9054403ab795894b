//! The proofs: harness, design, engine, and mutants that must be refuted.

/// What proves.
#[derive(Clone, Copy)]
pub enum Engine {
    /// z3: so many steps from reset, bounded, and by induction over as many if asked for.
    Z3 { steps: u32, induction: bool },
    /// ABC's bounded model checking: so many cycles from reset.
    Bounded { cycles: u32 },
    /// ABC's property-directed reachability: without a bound.
    Reachability,
}

/// A mutant: file, text, and what to put in its place.
pub type Mutant = (&'static str, &'static str, &'static str);

pub struct Proof {
    /// The harness, `fpga/formal/NAME.sv`.
    pub name: &'static str,
    /// Files of `fpga/rtl`, or of `fpga` with a folder.
    pub design: &'static [&'static str],
    pub engine: Engine,
    /// More than one clock.
    pub clocks: bool,
    /// A bounded proof says what lies within its bound: under `REACH` the harness denies it, which must be refuted.
    pub reach: bool,
    pub mutants: &'static [Mutant],
}

pub const ROUND_ROBIN: Proof = Proof {
    name: "fv_rr_arbiter",
    design: &["rr_arbiter.sv"],
    engine: Engine::Z3 { steps: 12, induction: true },
    clocks: false,
    reach: false,
    mutants: &[
        ("rr_arbiter.sv", "req & above", "req & 3'b111"),
        ("rr_arbiter.sv", "~(grant | (grant - 1'b1))", "~(grant - 1'b1)"),
    ],
};

pub const GRANT: Proof = Proof {
    name: "fv_grant_split",
    design: &["grant_split.sv"],
    engine: Engine::Z3 { steps: 2, induction: true },
    clocks: false,
    reach: false,
    mutants: &[("grant_split.sv", "free - grant_high", "free")],
};

pub const FIFO: Proof = Proof {
    name: "fv_sync_fifo",
    design: &["sync_fifo.sv", "lutram_1r1w.sv"],
    engine: Engine::Z3 { steps: 14, induction: false },
    clocks: false,
    reach: false,
    mutants: &[
        ("sync_fifo.sv", "if (reads) rd_ptr", "if (reads && !wr_en) rd_ptr"),
        ("lutram_1r1w.sv", "if (wr_en) mem[wr_addr]", "if (wr_en && wr_addr != 3) mem[wr_addr]"),
    ],
};

pub const CROSSING: Proof = Proof {
    name: "fv_async_fifo",
    design: &["async_fifo.sv", "lutram_1r1w.sv", "reset_sync.sv"],
    engine: Engine::Bounded { cycles: 26 },
    clocks: true,
    reach: false,
    mutants: &[
        ("async_fifo.sv", "wr_gray <= wr_next ^ (wr_next >> 1)", "wr_gray <= wr_next"),
        ("async_fifo.sv", "rd_gray <= rd_next ^ (rd_next >> 1)", "rd_gray <= rd_next"),
        ("async_fifo.sv", "wr_gray_r2 <= wr_gray_r1", "wr_gray_r2 <= wr_gray"),
        ("async_fifo.sv", "rd_gray_w2 <= rd_gray_w1", "rd_gray_w2 <= rd_gray"),
        ("async_fifo.sv", "rd_gray != wr_gray_r2", "rd_gray[AW-1:0] != wr_gray_r2[AW-1:0]"),
        ("lutram_1r1w.sv", "if (wr_en) mem[wr_addr]", "if (wr_en && wr_addr != 3) mem[wr_addr]"),
    ],
};

pub const CREDIT: Proof = Proof {
    name: "fv_credit",
    design: &["response_scheduler.sv", "rr_arbiter.sv", "grant_split.sv"],
    engine: Engine::Bounded { cycles: 60 },
    clocks: false,
    reach: false,
    mutants: &[
        ("response_scheduler.sv", "if (word) waited <= 0;\n        else if (tick)", "if (tick)"),
        (
            "response_scheduler.sv",
            "if (tail) begin\n          state <= IDLE",
            "if (word) begin\n          state <= IDLE",
        ),
        ("response_scheduler.sv", "asking = pending & ~cancel", "asking = pending"),
        ("response_scheduler.sv", "asked_low > unreserved)", "asked_low > 12'd4095)"),
        ("grant_split.sv", "free - grant_high", "free"),
    ],
};

pub const REQUESTS: Proof = Proof {
    name: "fv_request_scheduler",
    design: &["request_scheduler.sv", "rr_arbiter.sv"],
    engine: Engine::Reachability,
    clocks: false,
    reach: false,
    mutants: &[
        ("request_scheduler.sv", "token <= token & ~grant;", ""),
        ("request_scheduler.sv", "!take && res_peer == waiting_peer", "!take"),
        ("request_scheduler.sv", "waiting && !req_valid && waited[1]", "waiting && !req_valid && waited[0]"),
        ("request_scheduler.sv", "any && !waiting && !req_valid", "any && !req_valid"),
        ("request_scheduler.sv", "token[i] && ready[i]", "token[i]"),
        ("rr_arbiter.sv", "req & above", "req"),
    ],
};

pub const QUEUES: Proof = Proof {
    name: "fv_queue_bank",
    design: &["queue_bank.sv", "keep_count.sv", "formal/ram_one_word.sv"],
    engine: Engine::Bounded { cycles: 16 },
    clocks: false,
    reach: false,
    mutants: &[
        ("queue_bank.sv", "fill >= CAP_WORDS[11:0]", "fill > CAP_WORDS[11:0]"),
        ("queue_bank.sv", "&& !s1_discard && fits && !rst;", "&& fits && !rst;"),
        ("queue_bank.sv", "used[i] + frame_words - rd_free_words", "used[i] + frame_words"),
        ("queue_bank.sv", "cur_ptr <= rd_ptr[rd_queue]", "cur_ptr <= rd_ptr[cur_queue]"),
    ],
};

pub const SCAN: Proof = Proof {
    name: "fv_length_scan",
    design: &["length_scan.sv"],
    engine: Engine::Bounded { cycles: 25 },
    clocks: false,
    reach: false,
    mutants: &[
        ("length_scan.sv", "total <= {1'b0, grant_words}", "words <= grant_words"),
        ("length_scan.sv", "else stop <= 1'b1;", ""),
    ],
};

pub const BURSTS: Proof = Proof {
    name: "fv_burst_scheduler",
    design: &[
        "nic_pkg.sv",
        "burst_scheduler.sv",
        "rr_arbiter.sv",
        "sync_fifo.sv",
        "lutram_1r1w.sv",
        "formal/length_scan_contract.sv",
    ],
    engine: Engine::Bounded { cycles: 32 },
    clocks: false,
    reach: false,
    mutants: &[
        ("burst_scheduler.sv", "scan_grant <= grant_low[burst_peer]", "scan_grant <= grant_high[burst_peer]"),
        ("burst_scheduler.sv", "token_return <= was_null", "token_return <= 1'b1"),
        ("burst_scheduler.sv", "end else state <= SETTLE", "end else state <= TAIL"),
    ],
};

pub const OUTPUT: Proof = Proof {
    name: "fv_output_scheduler",
    design: &["output_scheduler.sv", "sync_fifo.sv", "lutram_1r1w.sv"],
    engine: Engine::Bounded { cycles: 20 },
    clocks: false,
    reach: false,
    mutants: &[
        ("output_scheduler.sv", "from_slow <= slow_packet", "from_slow <= slow_packet && !fast_packet"),
        ("output_scheduler.sv", "if (last) state <= DONE", "if (last || slow_packet) state <= DONE"),
    ],
};

pub const PARSER: Proof = Proof {
    name: "fv_input_parser",
    design: &["input_parser.sv"],
    // A header, and what comes at once after it.
    engine: Engine::Bounded { cycles: 13 },
    clocks: false,
    reach: true,
    mutants: &[
        ("input_parser.sv", "!s_axis_tkeep[1]", "!s_axis_tkeep[0]"),
        ("input_parser.sv", "total_length >= 16'd20", "total_length >= 16'd19"),
        ("input_parser.sv", "high_half[15:13] == 3'b111", "high_half[15:12] == 4'b1110"),
        ("input_parser.sv", "version_ihl[7:4] == 4'd4", "version_ihl[6:4] == 3'd4"),
        ("input_parser.sv", "if (hdr_valid_q) checksum_ok", "if (hdr_valid) checksum_ok"),
        ("input_parser.sv", "          part <= {2'b0, h0};\n", "          part <= 0;\n"),
    ],
};

pub const RULES: Proof = Proof {
    name: "fv_rule_table",
    design: &["rule_table.sv", "formal/lutram_one_word.sv", "formal/ram_one_word.sv"],
    // A commit and a frame after it.
    engine: Engine::Bounded { cycles: 20 },
    clocks: false,
    reach: true,
    mutants: &[
        ("rule_table.sv", "hits != 0 && !found", "hits != 0"),
        ("rule_table.sv", "wire odd = !hits[0];", "wire odd = hits[1];"),
        ("rule_table.sv", "(dst & ~match_r[i][63:32]) == 0)", "1'b0)"),
        ("rule_table.sv", "if (change && !start) begin", "if (change) begin"),
        ("rule_table.sv", "pair == 3'd2", "pair == 3'd1"),
        ("rule_table.sv", "class_enable && is_ipv4 && valid", "class_enable && valid"),
        ("rule_table.sv", "(rd_mac && !mac_busy) ?", "rd_mac ?"),
        ("rule_table.sv", ".wr_en(wr_route && wr_word[1])", ".wr_en(wr_route && wr_word[1] && !wr_word[5])"),
    ],
};

pub const REWRITE: Proof = Proof {
    name: "fv_ip_rewrite",
    design: &["nic_pkg.sv", "ip_rewrite.sv", "keep_count.sv"],
    engine: Engine::Reachability,
    clocks: false,
    reach: false,
    mutants: &[
        ("ip_rewrite.sv", "17'h0feff", "17'h0ff00"),
        ("ip_rewrite.sv", "~(sum[15:0] + {15'd0, sum[16]})", "~sum[15:0]"),
    ],
};

pub const CHANNELS: Proof = Proof {
    name: "fv_dma_engine",
    design: &["dma_engine.sv", "rr_arbiter.sv"],
    engine: Engine::Reachability,
    clocks: false,
    reach: false,
    mutants: &[
        ("dma_engine.sv", ".req(valid), .take(take)", ".req(valid), .take(1'b0)"),
        ("dma_engine.sv", "done <= 4'd1 << channel", "done <= 4'd1 << pick"),
    ],
};

pub const UPLOADS: Proof = Proof {
    name: "fv_slow_path_rx",
    design: &["slow_path_rx.sv", "sync_fifo.sv", "lutram_1r1w.sv"],
    engine: Engine::Bounded { cycles: 36 },
    clocks: false,
    reach: false,
    mutants: &[
        ("slow_path_rx.sv", "len_queue <= ready_high", "len_queue <= !ready_low"),
        ("slow_path_rx.sv", "packets[15:8] != 0 && head_high != tail[31:16]", "packets[15:8] != 0"),
        ("slow_path_rx.sv", "{!head[8], len_queue, 51'd0", "{!head[8], !len_queue, 51'd0"),
        (
            "slow_path_rx.sv",
            "if (!dma_error) begin\n            if (len_queue)",
            "begin\n            if (len_queue)",
        ),
    ],
};

pub const DOWNLOADS: Proof = Proof {
    name: "fv_slow_path_tx",
    design: &["nic_pkg.sv", "slow_path_tx.sv", "sync_fifo.sv", "lutram_1r1w.sv"],
    engine: Engine::Bounded { cycles: 20 },
    clocks: false,
    reach: false,
    mutants: &[
        ("slow_path_tx.sv", "free_words > {4'd0, data_words}", "free_words >= {4'd0, data_words}"),
        ("slow_path_tx.sv", "rsp_valid && rsp_tag == read_tag", "rsp_valid"),
        ("slow_path_tx.sv", "post_length < SHORTEST ||", ""),
    ],
};

pub const INTERRUPTS: Proof = Proof {
    name: "fv_interrupts",
    design: &["nic_pkg.sv", "register_file.sv"],
    engine: Engine::Reachability,
    clocks: false,
    reach: false,
    mutants: &[
        (
            "register_file.sv",
            "irq_status <= (irq_status & ~wr_data[2:0]) | {errors != 0, irq_tx, irq_rx}",
            "irq_status <= irq_status & ~wr_data[2:0]",
        ),
        (
            "register_file.sv",
            "error_status <= (error_status & ~wr_data[9:0]) | errors",
            "error_status <= error_status & ~wr_data[9:0]",
        ),
    ],
};

pub const COUNTERS: Proof = Proof {
    name: "fv_counter_bank",
    design: &["counter_bank.sv", "formal/ram_one_word.sv"],
    engine: Engine::Bounded { cycles: 20 },
    clocks: false,
    reach: false,
    mutants: &[
        ("counter_bank.sv", "add_ready ? add_amount : 8'd1", "add_ready ? add_amount : 8'd2"),
        (
            "counter_bank.sv",
            "rd_data + {56'd0, amount[1]}",
            "{rd_data[63:32], rd_data[31:0] + {24'd0, amount[1]}}",
        ),
        (
            "counter_bank.sv",
            "reads ? rd_addr : add_ready ? add_addr",
            "reads ? rd_addr : add_ready ? rd_addr",
        ),
    ],
};

pub const OUTPUT_FIFO: Proof = Proof {
    name: "fv_output_fifo",
    design: &["output_fifo.sv", "formal/ram_one_word.sv"],
    engine: Engine::Bounded { cycles: 13 },
    clocks: false,
    reach: false,
    mutants: &[
        ("output_fifo.sv", "end else wr_ptr <= begin_ptr;", "end"),
        ("output_fifo.sv", "- {11'd0, writes} + returned", "- {11'd0, writes}"),
        ("output_fifo.sv", "{{AW{1'b0}}, complete}", "{{AW{1'b0}}, writes}"),
        ("output_fifo.sv", "reg [AW:0] packets", "reg [AW-1:0] packets"),
    ],
};

pub const MESSAGES: Proof = Proof {
    name: "fv_message_sender",
    design: &["nic_pkg.sv", "message_sender.sv"],
    engine: Engine::Reachability,
    clocks: false,
    reach: false,
    mutants: &[
        ("message_sender.sv", "!(last_was_res && req_valid)", "1'b1"),
        ("message_sender.sv", "req_valid && !link_valid && !res_ready", "req_valid && !res_ready"),
        ("message_sender.sv", "wire take = !busy;", "wire take = !busy || dma_done;"),
    ],
};

pub const LINKS: Proof = Proof {
    name: "fv_peer_links",
    design: &["nic_pkg.sv", "peer_links.sv"],
    engine: Engine::Reachability,
    clocks: false,
    reach: false,
    mutants: &[
        ("peer_links.sv", "ack_due[k] <= 1'b1;\n        nak_due", "nak_due"),
        ("peer_links.sv", "ack_due[k] <= 1'b1;\n        nak_due[k] <= 1'b0;", "ack_due[k] <= 1'b1;"),
        ("peer_links.sv", "if (!(got_sync && got_peer == next_peer)) ack_due", "ack_due"),
        ("peer_links.sv", "if (!busy[k]) begin", "if (1'b1) begin"),
        ("peer_links.sv", "waiting[k] && acked[k]", "waiting[k]"),
        ("peer_links.sv", "if (taken[k] && got_ack", "if (got_ack"),
        ("peer_links.sv", "            acked[k] <= 1'b0;\n", ""),
        ("peer_links.sv", "heard[k] <= 1'b0;\n        forget", "forget"),
    ],
};

pub const AXI_WRITES: Proof = Proof {
    name: "fv_axi_master",
    design: &["axi_master.sv"],
    engine: Engine::Bounded { cycles: 16 },
    clocks: false,
    reach: false,
    mutants: &[
        ("axi_master.sv", "(to_boundary < longest) ? to_boundary : longest", "longest"),
        ("axi_master.sv", "bvalid && !bresp[1];", "bvalid;"),
        ("axi_master.sv", "if (arrived == 0) begin", "if (1'b1) begin"),
    ],
};

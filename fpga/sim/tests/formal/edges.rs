//! The proofs of what stands between the card and the line, the bus, and time.

use super::proofs::{Engine, Proof};

pub const TICKS: Proof = Proof {
    name: "fv_tick_timer",
    design: &["tick_timer.sv"],
    engine: Engine::Z3 { steps: 6, induction: true },
    clocks: false,
    reach: false,
    mutants: &[
        ("tick_timer.sv", "if (bus_idle) idle <=", "idle <="),
        ("tick_timer.sv", "tick <= bus_idle && idle >= patience", "tick <= bus_idle && idle > patience"),
    ],
};

pub const GEARBOX_RX: Proof = Proof {
    name: "fv_mac_gearbox_rx",
    design: &["mac_gearbox_rx.sv"],
    engine: Engine::Reachability,
    clocks: false,
    reach: false,
    mutants: &[
        ("mac_gearbox_rx.sv", "(s_axis_tlast || lane[7]) ? 8'd1", "lane[7] ? 8'd1"),
        ("mac_gearbox_rx.sv", "lane <= s_axis_tlast ? 8'd1 : ", "lane <= "),
    ],
};

pub const GEARBOX_TX: Proof = Proof {
    name: "fv_mac_gearbox_tx",
    design: &["mac_gearbox_tx.sv"],
    engine: Engine::Reachability,
    clocks: false,
    reach: false,
    mutants: &[
        ("mac_gearbox_tx.sv", "else if (m_axis_tready) begin", "else begin"),
        ("mac_gearbox_tx.sv", "assign s_axis_tready = !next_valid;", "assign s_axis_tready = 1'b1;"),
        ("mac_gearbox_tx.sv", "last && !more[0]", "last && !more[1]"),
        ("mac_gearbox_tx.sv", "assign s_axis_tready = !next_valid;", "assign s_axis_tready = !valid;"),
    ],
};

pub const BURST_RECEIVER: Proof = Proof {
    name: "fv_burst_receiver",
    design: &["nic_pkg.sv", "burst_receiver.sv", "lutram_1r1w.sv"],
    engine: Engine::Bounded { cycles: 14 },
    clocks: false,
    reach: true,
    mutants: &[
        ("burst_receiver.sv", "(was_stale || !begun)", "was_stale"),
        ("burst_receiver.sv", "if (wrong) next[23:21] = IGNORE;", ""),
        ("burst_receiver.sv", "{1'b0, wr_data[11:0]} <= granted_words", "1'b1"),
        ("burst_receiver.sv", "&& {4'd0, data_words} < left", ""),
    ],
};

pub const BUS_TARGET: Proof = Proof {
    name: "fv_pcix_target",
    design: &["pcix_pkg.sv", "pcix_target.sv"],
    engine: Engine::Bounded { cycles: 16 },
    clocks: false,
    reach: true,
    mutants: &[
        ("pcix_target.sv", "wr_error <= bad;", "wr_error <= 1'b0;"),
        (
            "pcix_target.sv",
            "if (address && frame_i && !bad && allowed)",
            "if (address && frame_i && allowed)",
        ),
        ("pcix_target.sv", "wire allowed = open || low;", "wire allowed = 1'b1;"),
        ("pcix_target.sv", "wr_addr <= addr_q;", "wr_addr <= addr;"),
    ],
};

pub const AXI_TARGET: Proof = Proof {
    name: "fv_axi_target",
    design: &["axi_target.sv"],
    engine: Engine::Bounded { cycles: 20 },
    clocks: false,
    reach: true,
    mutants: &[
        ("axi_target.sv", "|| wstrb != 8'hff", ""),
        ("axi_target.sv", "wr_bad <= spoilt;", ""),
        ("axi_target.sv", "!open && waddr[15:12] != 0", "1'b0"),
        ("axi_target.sv", "if (rlast) arready <= 1'b1;", "if (rlast || rd_bad) arready <= 1'b1;"),
    ],
};

pub const MAC_TX: Proof = Proof {
    name: "fv_gmii_mac_tx",
    design: &["crc32_byte.sv", "gmii_mac_tx.sv"],
    // A padded frame and the beginning of the next one.
    engine: Engine::Bounded { cycles: 104 },
    clocks: false,
    reach: true,
    mutants: &[
        ("gmii_mac_tx.sv", "state <= minimum ? FCS : PAD;", "state <= FCS;"),
        ("gmii_mac_tx.sv", "step == 4'd10", "step == 4'd9"),
        ("gmii_mac_tx.sv", "          rest <= 1'b1;\n", ""),
    ],
};

pub const MAC_RX: Proof = Proof {
    name: "fv_gmii_mac_rx",
    design: &["crc32_byte.sv", "gmii_mac_rx.sv"],
    // The shortest good frame.
    engine: Engine::Bounded { cycles: 80 },
    clocks: false,
    reach: true,
    mutants: &[
        ("gmii_mac_rx.sv", "count == 11'd63", "count == 11'd62"),
        ("gmii_mac_rx.sv", "error <= error | gmii_rx_er;", ""),
        ("gmii_mac_rx.sv", "end else if (gmii_rxd != 8'h55) begin", "end else if (gmii_rxd == 8'hff) begin"),
        ("gmii_mac_rx.sv", "if (count == 11'd4) have_byte", "if (count == 11'd3) have_byte"),
    ],
};

pub const RX_CROSSING: Proof = Proof {
    name: "fv_rx_crossing",
    design: &["keep_count.sv", "async_fifo.sv", "lutram_1r1w.sv", "reset_sync.sv", "rx_crossing.sv"],
    engine: Engine::Bounded { cycles: 24 },
    clocks: true,
    reach: true,
    mutants: &[
        ("rx_crossing.sv", "stored <= takes && !s_axis_tlast;", "stored <= 1;"),
        ("rx_crossing.sv", "full <= level >= FULL;", "full <= 1'b0;"),
    ],
};

pub const TX_CROSSING: Proof = Proof {
    name: "fv_tx_crossing",
    design: &["keep_count.sv", "async_fifo.sv", "lutram_1r1w.sv", "reset_sync.sv", "tx_crossing.sv"],
    engine: Engine::Bounded { cycles: 26 },
    clocks: true,
    reach: true,
    mutants: &[
        ("tx_crossing.sv", "if (rst) begin\n", "if (rst) begin\n      clear <= 3'd0;\n"),
        ("tx_crossing.sv", "clear[2] || clear[1]", "clear[2]"),
        ("tx_crossing.sv", "!s_axis_tlast : in_frame;", "!s_axis_tlast : 1'b0;"),
        ("tx_crossing.sv", "&& s_axis_tlast) skip", ") skip"),
    ],
};

pub const PULSES: Proof = Proof {
    name: "fv_toggle_sync",
    design: &["reset_sync.sv", "toggle_sync.sv"],
    engine: Engine::Bounded { cycles: 30 },
    clocks: true,
    reach: true,
    mutants: &[
        ("toggle_sync.sv", "seen[2] ^ seen[1]", "!seen[2] && seen[1]"),
        ("toggle_sync.sv", "toggle ^ pulse", "toggle | pulse"),
    ],
};

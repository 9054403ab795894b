// SPDX-License-Identifier: MIT OR Apache-2.0
// Binds the stream rules to every stream of the card, at its sender and at its receiver, and the rule of turns to the
// schedulers. A test compares this list with the ports.
`default_nettype none

bind gmii_mac_rx axis_checker #(.W(8), .BEATS(1518)) m_axis_checker (
    .clk(clk), .rst(rst), .tvalid(m_axis_tvalid), .tready(1'b1), .tdata(m_axis_tdata), .tkeep(1'b1),
    .tlast(m_axis_tlast), .tuser(m_axis_tuser), .side(1'b0)
);
bind mac_gearbox_rx axis_checker #(.W(8), .BEATS(1518)) s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(1'b1), .tdata(s_axis_tdata), .tkeep(1'b1),
    .tlast(s_axis_tlast), .tuser(s_axis_tuser), .side(1'b0)
);
bind mac_gearbox_rx axis_checker m_axis_checker (
    .clk(clk), .rst(rst), .tvalid(m_axis_tvalid), .tready(1'b1), .tdata(m_axis_tdata), .tkeep(m_axis_tkeep),
    .tlast(m_axis_tlast), .tuser(m_axis_tuser), .side(1'b0)
);
bind rx_crossing axis_checker s_axis_checker (
    .clk(rx_clk), .rst(wr_rst), .tvalid(s_axis_tvalid), .tready(1'b1), .tdata(s_axis_tdata), .tkeep(s_axis_tkeep),
    .tlast(s_axis_tlast), .tuser(s_axis_tuser), .side(1'b0)
);
bind rx_crossing axis_checker m_axis_checker (
    .clk(clk), .rst(rst), .tvalid(m_axis_tvalid), .tready(1'b1), .tdata(m_axis_tdata), .tkeep(m_axis_tkeep),
    .tlast(m_axis_tlast), .tuser(m_axis_tuser), .side(1'b0)
);
bind nic_mac axis_checker m_axis_checker (
    .clk(clk), .rst(rst), .tvalid(m_axis_tvalid), .tready(1'b1), .tdata(m_axis_tdata), .tkeep(m_axis_tkeep),
    .tlast(m_axis_tlast), .tuser(m_axis_tuser), .side(1'b0)
);
bind nic_mac axis_checker s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tdata(s_axis_tdata), .tkeep(s_axis_tkeep),
    .tlast(s_axis_tlast), .tuser(2'd0), .side(1'b0)
);
bind input_processing axis_checker s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(1'b1), .tdata(s_axis_tdata), .tkeep(s_axis_tkeep),
    .tlast(s_axis_tlast), .tuser(s_axis_tuser), .side(1'b0)
);
bind input_processing axis_checker #(.GAP_CYCLES(4), .SIDE(4)) m_axis_checker (
    .clk(clk), .rst(rst), .tvalid(m_axis_tvalid), .tready(1'b1), .tdata(m_axis_tdata), .tkeep(m_axis_tkeep),
    .tlast(m_axis_tlast), .tuser({1'b0, m_axis_tuser}), .side({m_axis_tdest, m_axis_thigh})
);
bind input_parser axis_checker s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(1'b1), .tdata(s_axis_tdata), .tkeep(s_axis_tkeep),
    .tlast(s_axis_tlast), .tuser(2'd0), .side(1'b0)
);
bind ip_rewrite axis_checker s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tdata(s_axis_tdata),
    .tkeep(s_axis_tkeep), .tlast(s_axis_tlast), .tuser(s_axis_tuser), .side(1'b0)
);
bind ip_rewrite axis_checker #(.GAP_CYCLES(4), .SIDE(4)) m_axis_checker (
    .clk(clk), .rst(rst), .tvalid(m_axis_tvalid), .tready(1'b1), .tdata(m_axis_tdata), .tkeep(m_axis_tkeep),
    .tlast(m_axis_tlast), .tuser({1'b0, m_axis_tuser}), .side({m_axis_tdest, m_axis_thigh})
);
bind input_fifos axis_checker #(.GAP_CYCLES(4), .SIDE(4)) s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(1'b1), .tdata(s_axis_tdata), .tkeep(s_axis_tkeep),
    .tlast(s_axis_tlast), .tuser({1'b0, s_axis_tuser}), .side({s_axis_tdest, s_axis_thigh})
);
bind queue_bank axis_checker #(.GAP_CYCLES(2), .SIDE(QW)) s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(1'b1), .tdata(s_axis_tdata), .tkeep(s_axis_tkeep),
    .tlast(s_axis_tlast), .tuser({1'b0, s_axis_tuser}), .side(s_axis_tqueue)
);
bind output_stage axis_checker m_axis_checker (
    .clk(clk), .rst(rst), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tdata(m_axis_tdata), .tkeep(m_axis_tkeep),
    .tlast(m_axis_tlast), .tuser(2'd0), .side(1'b0)
);
bind output_scheduler axis_checker m_axis_checker (
    .clk(clk), .rst(rst), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tdata(m_axis_tdata), .tkeep(m_axis_tkeep),
    .tlast(m_axis_tlast), .tuser(2'd0), .side(1'b0)
);
bind tx_crossing axis_checker s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tdata(s_axis_tdata), .tkeep(s_axis_tkeep),
    .tlast(s_axis_tlast), .tuser(2'd0), .side(1'b0)
);
bind tx_crossing axis_checker m_axis_checker (
    .clk(tx_clk), .rst(rd_rst), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tdata(m_axis_tdata),
    .tkeep(m_axis_tkeep), .tlast(m_axis_tlast), .tuser(2'd0), .side(1'b0)
);
bind mac_gearbox_tx axis_checker s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tdata(s_axis_tdata),
    .tkeep(s_axis_tkeep), .tlast(s_axis_tlast), .tuser(2'd0), .side(1'b0)
);
bind mac_gearbox_tx axis_checker #(.W(8), .BEATS(1518)) m_axis_checker (
    .clk(clk), .rst(rst), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tdata(m_axis_tdata), .tkeep(1'b1),
    .tlast(m_axis_tlast), .tuser(2'd0), .side(1'b0)
);
bind gmii_mac_tx axis_checker #(.W(8), .BEATS(1518)) s_axis_checker (
    .clk(clk), .rst(rst), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tdata(s_axis_tdata), .tkeep(1'b1),
    .tlast(s_axis_tlast), .tuser(2'd0), .side(1'b0)
);

// Packets with their header word, 191 words at most; one that is taken back ends there.
bind output_fifo axis_checker #(.BEATS(191)) wr_checker (
    .clk(clk), .rst(rst || wr_cancel), .tvalid(wr_valid && !wr_cancel), .tready(1'b1), .tdata(wr_data), .tkeep(8'hff),
    .tlast(wr_last), .tuser(2'd0), .side(1'b0)
);

// Handshakes without frames.
bind sync_fifo handshake_checker #(.W(W)) rd_checker (
    .clk(clk), .rst(rst), .valid(rd_valid), .ready(rd_en), .payload(rd_data)
);
bind async_fifo handshake_checker #(.W(W)) rd_checker (
    .clk(rd_clk), .rst(rd_rst), .valid(rd_valid), .ready(rd_en), .payload(rd_data)
);
bind message_sender handshake_checker #(.W(PW + 24)) req_checker (
    .clk(clk), .rst(rst), .valid(req_valid), .ready(req_ready), .payload({req_peer, req_high, req_low})
);

// Turns, of those that the rule in force prefers.
bind burst_scheduler turn_checker #(.N(PEERS)) turns (
    .clk(clk), .rst(rst), .req(pending & ready), .take(take), .grant(grant)
);
bind request_scheduler turn_checker #(.N(PEERS)) turns (
    .clk(clk), .rst(rst), .req(active), .take(take), .grant(grant)
);
bind response_scheduler turn_checker #(.N(NICS)) turns (
    .clk(clk), .rst(rst), .req(candidates), .take(take), .grant(grant)
);
bind dma_engine turn_checker #(.N(4)) turns (.clk(clk), .rst(rst), .req(valid), .take(take), .grant(grant));

`default_nettype wire

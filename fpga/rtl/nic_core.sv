// SPDX-License-Identifier: MIT OR Apache-2.0
// The NIC without its bus: Gigabit MAC on GMII with clocks of its own, packet logic, schedulers, registers. A wrapper
// (nic_pcix, nic_axi) brings writes and reads of its BAR, carries out its sequences, and hands it what it has read.
//
// A destination is a card's number. Within the card, peers are counted without a gap: destination d is peer slot
// (d xor own_id) - 1, and slot 0 before the subtraction is the card itself, which stands for the slow path.
`default_nettype none

module nic_core #(
    parameter NICS = 4,               // cards that can be addressed; 4 or 8
    parameter CAP_WORDS = 1920,       // of every input FIFO
    parameter OUT_CAP_WORDS = 1920    // of the output FIFOs
) (
    // Resets may come at any time, and each without the others.
    input  wire        gmii_rx_clk,
    input  wire        rx_arst,
    input  wire [7:0]  gmii_rxd,
    input  wire        gmii_rx_dv,
    input  wire        gmii_rx_er,
    input  wire        gmii_tx_clk,
    input  wire        tx_arst,
    output wire [7:0]  gmii_txd,
    output wire        gmii_tx_en,
    output wire        gmii_tx_er,
    input  wire        clk,
    input  wire        arst,
    output wire        irq,
    output wire        open,              // the whole BAR can be written, not the registers alone
    output wire        disconnect,        // wanted at every boundary, for tests
    input  wire        bus_idle,          // time passes for those who wait for others
    output wire [3:0]  bus_id,            // goes with the card's own sequences
    // A word written to the BAR; with an error it is not to be trusted.
    input  wire        wr_valid,
    input  wire        wr_error,
    input  wire [15:0] wr_addr,
    input  wire [63:0] wr_data,
    // A register is read.
    input  wire        rd_valid,
    input  wire [11:0] rd_addr,
    output wire        rd_done,
    output wire [63:0] rd_data,
    // Sequences, one at a time: up to 512 words written, or a read, whose data come later as responses.
    output wire        m_start,
    output wire        m_read,
    output wire [31:0] m_addr,
    output wire [9:0]  m_words,
    output wire [3:0]  m_tag,
    output wire [63:0] m_data,            // first word falls through
    input  wire        m_pop,
    input  wire        m_accept,          // pulse: the oldest word popped and not yet accepted has arrived
    input  wire        m_done,
    input  wire        m_error,           // with it: not all words have arrived
    input  wire        m_aborted,         // with it: because the target did not take them
    input  wire        m_disconnected,    // pulse
    input  wire        parity,            // a word with wrong parity, sent or received; a read that was refused
    input  wire        rsp_valid,
    input  wire        rsp_error,
    input  wire [3:0]  rsp_tag,
    input  wire [63:0] rsp_data
);
  generate
    if (NICS != 4 && NICS != 8) $error("NICS is 4 or 8");
    if (CAP_WORDS < 191 || CAP_WORDS > 2048) $error("CAP_WORDS is 191 (the longest packet) to 2048");
    if (OUT_CAP_WORDS < 191 || OUT_CAP_WORDS > 2048) $error("OUT_CAP_WORDS is 191 to 2048");
  endgenerate
  localparam EW = $clog2(NICS);
  localparam PEERS = NICS - 1;
  localparam PW = $clog2(PEERS);
  localparam QW = $clog2(2 * PEERS);
  localparam EVENTS = nic_pkg::EV_DROP_FIFO + 2 * NICS;
  localparam CW = $clog2(EVENTS);

  wire rst;
  reset_sync core_reset (.clk(clk), .arst(arst), .rst(rst));

  // Configuration.
  wire [1:0] control, policy;
  wire [2:0] own_id;
  wire [47:0] own_mac;
  wire [11:0] grant_min_words;
  wire [10:0] quantum_words;
  wire [15:0] patience;
  wire [63:0] rx_desc_base, rx_buffer_base, post_data;
  wire [31:0] rx_tail, tx_done_addr;
  wire [127:0] peer_base;
  wire [7:0] peer_present, peer_resync;
  wire tx_post;
  wire enable = control[nic_pkg::BIT_CONTROL_ENABLE];
  wire [EW-1:0] own = own_id[EW-1:0];
  assign open = enable;
  assign disconnect = control[nic_pkg::BIT_CONTROL_DISCONNECT];
  assign bus_id = {1'b0, own_id};

  wire tick;
  tick_timer timer (.clk(clk), .rst(rst), .bus_idle(bus_idle), .patience(patience), .tick(tick));

  // Peers by slot, and back.
  reg [PEERS-1:0] present, resync;
  reg [NICS-1:0] up;
  reg [31:0] peer_state;
  wire [PEERS-1:0] live, heard;
  wire [2*PEERS-1:0] link_states;
  integer p;
  always_comb begin
    up = 0;
    peer_state = 32'd0;
    for (p = 0; p < PEERS; p = p + 1) begin
      present[p] = peer_present[{{(3 - EW){1'b0}}, (p[EW-1:0] + 1'b1) ^ own}];
      resync[p] = peer_resync[{{(3 - EW){1'b0}}, (p[EW-1:0] + 1'b1) ^ own}];
      up[(p[EW-1:0]+1'b1)^own] = live[p];
      peer_state[{{(3 - EW){1'b0}}, (p[EW-1:0] + 1'b1) ^ own, 2'b00}+:4] = {link_states[2*p+:2], heard[p], live[p]};
    end
  end

  // MAC and clock crossings.
  wire [63:0] rx_data, tx_data;
  wire [7:0] rx_keep, tx_keep;
  wire [1:0] rx_user;
  wire rx_valid, rx_last, tx_valid, tx_ready, tx_last, rx_no_sfd, rx_crowded, tx_sent, tx_cut;
  nic_mac mac (
      .gmii_rx_clk(gmii_rx_clk), .rx_arst(rx_arst), .gmii_rxd(gmii_rxd), .gmii_rx_dv(gmii_rx_dv),
      .gmii_rx_er(gmii_rx_er), .gmii_tx_clk(gmii_tx_clk), .tx_arst(tx_arst), .gmii_txd(gmii_txd),
      .gmii_tx_en(gmii_tx_en), .gmii_tx_er(gmii_tx_er), .clk(clk), .arst(arst), .rst(rst), .m_axis_tdata(rx_data),
      .m_axis_tkeep(rx_keep), .m_axis_tvalid(rx_valid), .m_axis_tlast(rx_last), .m_axis_tuser(rx_user),
      .s_axis_tdata(tx_data), .s_axis_tkeep(tx_keep), .s_axis_tvalid(tx_valid), .s_axis_tready(tx_ready),
      .s_axis_tlast(tx_last), .no_sfd(rx_no_sfd), .crowded(rx_crowded), .sent(tx_sent), .cut(tx_cut)
  );

  wire rx_pass, rx_refused;
  frame_gate gate (
      .clk(clk), .rst(rst), .enable(enable), .tvalid(rx_valid), .tlast(rx_last), .pass(rx_pass), .refused(rx_refused)
  );

  // Input processing.
  wire [63:0] in_data, rule_data;
  wire [7:0] in_keep;
  wire [2:0] in_dest, rule_status, rule_policy;
  wire in_valid, in_last, in_user, in_high, in_overflow, wr_rule, wr_commit, wr_policy, rd_rule, rule_done;
  wire [6:0] rd_word;
  wire [9:0] in_events;
  input_processing #(.NICS(NICS)) processing (
      .clk(clk), .rst(rst), .s_axis_tdata(rx_data), .s_axis_tkeep(rx_keep), .s_axis_tvalid(rx_valid && rx_pass),
      .s_axis_tlast(rx_last), .s_axis_tuser(rx_user), .own_id(own_id), .own_mac(own_mac), .up(up), .wr_rule(wr_rule),
      .wr_commit(wr_commit), .wr_policy(wr_policy), .wr_word({wr_addr[9], wr_addr[8:3]}), .wr_data(wr_data),
      .rd_rule(rd_rule), .rd_word(rd_word), .rd_done(rule_done), .rd_data(rule_data), .rule_status(rule_status),
      .policy(rule_policy), .m_axis_tdata(in_data), .m_axis_tkeep(in_keep), .m_axis_tvalid(in_valid),
      .m_axis_tlast(in_last), .m_axis_tuser(in_user), .m_axis_tdest(in_dest), .m_axis_thigh(in_high),
      .events(in_events), .overflow(in_overflow)
  );

  // Input FIFOs.
  wire slow_len_queue, slow_load, slow_queue, slow_rd, slow_free, fast_load, fast_rd, fast_free, fast_flushed, flush_room;
  wire [15:0] slow_packets;
  wire [10:0] slow_len, fast_len;
  wire [63:0] slow_word, fast_word;
  wire [11:0] slow_free_words, fast_free_words;
  wire [QW-1:0] fast_len_queue, fast_queue;
  wire [24*PEERS-1:0] fast_used;
  wire [16*PEERS-1:0] fast_packets;
  wire [7:0] fast_len_offset, fast_flushed_packets;
  wire [PEERS-1:0] flush;
  wire [2*NICS-1:0] drops;
  input_fifos #(.NICS(NICS), .CAP_WORDS(CAP_WORDS)) fifos (
      .clk(clk), .rst(rst), .own(own), .s_axis_tdata(in_data), .s_axis_tkeep(in_keep), .s_axis_tvalid(in_valid),
      .s_axis_tlast(in_last), .s_axis_tuser(in_user), .s_axis_tdest(in_dest), .s_axis_thigh(in_high), .drops(drops),
      .flush(flush & {PEERS{flush_room}}), .flushed(fast_flushed), .flushed_packets(fast_flushed_packets),
      .slow_packets(slow_packets), .slow_len_queue(slow_len_queue), .slow_len_bytes(slow_len), .slow_load(slow_load),
      .slow_queue(slow_queue), .slow_rd_en(slow_rd), .slow_rd_data(slow_word), .slow_free(slow_free),
      .slow_free_words(slow_free_words), .fast_used_words(fast_used), .fast_packets(fast_packets),
      .fast_len_queue(fast_len_queue), .fast_len_offset(fast_len_offset), .fast_len_bytes(fast_len),
      .fast_load(fast_load), .fast_queue(fast_queue), .fast_rd_en(fast_rd), .fast_rd_data(fast_word),
      .fast_free(fast_free), .fast_free_words(fast_free_words)
  );

  // What arrives from the bus.
  wire wr_register = wr_valid && !wr_error && wr_addr[15:12] == 4'd0;
  wire wr_mailbox = wr_valid && !wr_error && wr_addr[15:12] == nic_pkg::AREA_MAILBOX[15:12];
  wire wr_burst = wr_valid && wr_addr[15];
  wire [EW-1:0] mail_source;
  wire [PW-1:0] mail_peer;
  wire mail_req, mail_res, got_sync, got_ack, got_nak, mail_error;
  message_receiver #(.NICS(NICS)) mail (
      .wr_valid(wr_mailbox), .wr_addr(wr_addr[11:0]), .wr_data(wr_data), .own_id(own_id), .present(present),
      .source(mail_source), .peer(mail_peer), .got_req(mail_req), .got_res(mail_res), .got_sync(got_sync),
      .got_ack(got_ack), .got_nak(got_nak), .error(mail_error)
  );

  // Fast path, output side.
  wire out_wr, out_wr_last, out_word, tail_valid, stale_packet, burst_broken, burst_error, serving, abandoned;
  wire [63:0] out_wr_data;
  wire [11:0] tail_high, tail_low, fast_free_out, slow_free_out, res_high, res_low;
  wire [EW-1:0] broken_source, res_dest;
  burst_receiver #(.NICS(NICS)) receiver (
      .clk(clk), .rst(rst || !enable), .own_id(own_id), .wr_valid(wr_burst && {1'b0, wr_addr[14:12]} < NICS[3:0]),
      .wr_error(wr_error), .wr_source(wr_addr[12+:EW]), .wr_first(wr_addr[11:3] == 0), .wr_data(wr_data),
      .serving(serving), .serving_source(res_dest), .granted_words({1'b0, res_high} + {1'b0, res_low}),
      .out_valid(out_wr), .out_data(out_wr_data), .out_last(out_wr_last), .word(out_word), .tail_valid(tail_valid),
      .tail_high(tail_high), .tail_low(tail_low), .stale_packet(stale_packet), .broken(burst_broken),
      .broken_source(broken_source), .protocol_error(burst_error)
  );
  wire res_valid, res_ready, message_busy, message_sent, message_failed;
  wire [3:0] message_kind;
  wire [PW-1:0] message_peer;
  wire [PEERS-1:0] forget;
  reg [NICS-1:0] cancel;
  integer q;
  // A cycle later: the next REQ is some cycles away, and a grant that has begun is taken back.
  always_ff @(posedge clk) begin
    cancel <= 0;
    for (q = 0; q < PEERS; q = q + 1) cancel[(q[EW-1:0]+1'b1)^own] <= forget[q];
  end
  response_scheduler #(.NICS(NICS), .CAP_WORDS(OUT_CAP_WORDS)) responses (
      .clk(clk), .rst(rst || !enable), .grant_min_words(grant_min_words), .policy(policy),
      .quantum_words({1'b0, quantum_words}), .tick(tick), .free_words(fast_free_out),
      .alone_valid(mail_req && heard[mail_peer]), .alone_source(mail_source), .alone_high(wr_data[30:19]),
      .alone_low(wr_data[14:3]), .tail_valid(tail_valid), .tail_high(tail_high), .tail_low(tail_low),
      .word(out_word), .stored(out_wr), .cancel(cancel), .res_valid(res_valid), .res_ready(res_ready),
      .res_failed(message_sent && message_failed && message_kind == nic_pkg::MSG_RES), .res_dest(res_dest),
      .res_high(res_high), .res_low(res_low), .serving(serving), .abandoned(abandoned)
  );
  wire [EW-1:0] res_slot = res_dest ^ own;
  wire [EW-1:0] res_peer = res_slot - 1'b1;
  wire [EW-1:0] broken_slot = broken_source ^ own;
  wire [EW-1:0] broken_peer = broken_slot - 1'b1;
  reg [PEERS-1:0] breaks;
  always_comb begin
    breaks = 0;
    if (mail_req && !heard[mail_peer]) breaks[mail_peer] = 1'b1;
    if (burst_broken && broken_slot != 0) breaks[broken_peer[PW-1:0]] = 1'b1;
    if (abandoned) breaks[res_peer[PW-1:0]] = 1'b1;
  end

  // Links.
  wire link_valid, link_ready, link_anew, link_lost, burst_failed, burst_busy, req_valid, req_ready, res_accept;
  wire [3:0] link_type;
  wire [PW-1:0] link_peer, burst_peer, req_peer, token_peer;
  wire [PEERS-1:0] ready, clear, owed;
  reg [PEERS-1:0] peer_busy;
  always_comb begin
    peer_busy = 0;
    if (burst_busy) peer_busy[burst_peer] = 1'b1;
    if (req_valid) peer_busy[req_peer] = 1'b1;
    if (message_busy) peer_busy[message_peer] = 1'b1;
  end
  peer_links #(.PEERS(PEERS)) links (
      .clk(clk), .rst(rst), .enable(enable), .present(present), .tick(tick), .resync(resync), .busy(peer_busy),
      .owed(owed), .burst_failed(burst_failed), .burst_peer(burst_peer), .breaks(breaks), .got_sync(got_sync),
      .got_ack(got_ack), .got_nak(got_nak), .got_peer(mail_peer), .msg_valid(link_valid), .msg_ready(link_ready),
      .msg_type(link_type), .msg_peer(link_peer), .sent_valid(message_sent), .sent_failed(message_failed),
      .sent_type(message_kind), .sent_peer(message_peer), .live(live), .ready(ready), .clear(clear), .flush(flush),
      .heard(heard), .forget(forget), .anew(link_anew), .lost(link_lost), .states(link_states)
  );

  // Fast path, input side.
  wire token_return, burst_asks, burst_sent, burst_empty, burst_later;
  wire [11:0] req_high, req_low;
  wire [7:0] failed_packets;
  request_scheduler #(.PEERS(PEERS)) requests (
      .clk(clk), .rst(rst), .tick(tick), .ready(ready), .clear(clear), .used_words(fast_used),
      .req_valid(req_valid), .req_ready(req_ready), .req_peer(req_peer), .req_high(req_high), .req_low(req_low),
      .res_valid(mail_res), .res_peer(mail_peer), .res_accept(res_accept), .owed(owed), .asks(burst_asks), .token_return(token_return),
      .token_peer(token_peer)
  );
  wire [3:0] dma_valid, dma_pop, dma_accept, dma_done, dma_read;
  wire dma_error;
  wire [127:0] dma_addr;
  wire [39:0] dma_words;
  wire [255:0] dma_data;
  wire [EW-1:0] burst_slot = {{(EW - PW){1'b0}}, burst_peer} + 1'b1;
  wire [EW-1:0] burst_dest = burst_slot ^ own;
  burst_scheduler #(.PEERS(PEERS)) bursts (
      .clk(clk), .rst(rst), .own_id({1'b0, own_id}), .ready(ready), .clear(clear), .res_valid(res_accept),
      .res_peer(mail_peer), .res_high(wr_data[30:19]), .res_low(wr_data[14:3]), .used_words(fast_used),
      .packets(fast_packets), .len_queue(fast_len_queue), .len_offset(fast_len_offset), .len_bytes(fast_len),
      .rd_load(fast_load), .rd_queue(fast_queue), .rd_en(fast_rd), .rd_data(fast_word), .rd_free(fast_free),
      .rd_free_words(fast_free_words), .dma_valid(dma_valid[3]), .burst_peer(burst_peer),
      .burst_dest({{(4 - EW){1'b0}}, burst_dest}), .dma_later(burst_later), .dma_words(dma_words[39:30]),
      .dma_data(dma_data[255:192]), .dma_pop(dma_pop[3]), .dma_accept(dma_accept[3]), .dma_done(dma_done[3]),
      .dma_error(dma_error), .asks(burst_asks), .busy(burst_busy), .failed(burst_failed), .failed_packets(failed_packets),
      .token_return(token_return), .token_peer(token_peer), .sent(burst_sent), .sent_empty(burst_empty)
  );
  assign dma_read[3:1] = 3'd0;
  assign dma_addr[127:96] = {peer_base[16*burst_dest+:16],
                             nic_pkg::AREA_BURST | {1'b0, own_id, 8'd0, burst_later, 3'd0}};
  message_sender #(.PEERS(PEERS)) messages (
      .clk(clk), .rst(rst), .own_id(own), .peer_base(peer_base), .link_valid(link_valid), .link_ready(link_ready),
      .link_type(link_type), .link_peer(link_peer), .req_valid(req_valid), .req_ready(req_ready), .req_peer(req_peer),
      .req_high(req_high), .req_low(req_low), .res_valid(res_valid), .res_ready(res_ready),
      .res_peer(res_peer[PW-1:0]), .res_high(res_high), .res_low(res_low), .busy(message_busy), .peer(message_peer),
      .kind(message_kind), .sent(message_sent), .failed(message_failed), .dma_valid(dma_valid[2]),
      .dma_addr(dma_addr[95:64]), .dma_data(dma_data[191:128]), .dma_done(dma_done[2]), .dma_error(dma_error)
  );
  assign dma_words[29:20] = 10'd1;

  // Slow path.
  wire delivered, host_lost, slow_wr, slow_wr_last, slow_cancel, tx_reported, tx_refused, tx_failed, tx_timed_out;
  wire [63:0] slow_wr_data;
  wire [47:0] tx_status;
  slow_path_rx to_host (
      .clk(clk), .rst(rst), .enable(enable), .desc_base(rx_desc_base), .buffer_base(rx_buffer_base), .tail(rx_tail),
      .packets(slow_packets), .len_queue(slow_len_queue), .len_bytes(slow_len), .rd_load(slow_load),
      .rd_queue(slow_queue), .rd_en(slow_rd), .rd_data(slow_word), .rd_free(slow_free),
      .rd_free_words(slow_free_words), .dma_valid(dma_valid[1]), .dma_addr(dma_addr[63:32]),
      .dma_words(dma_words[19:10]), .dma_data(dma_data[127:64]), .dma_pop(dma_pop[1]), .dma_done(dma_done[1]),
      .dma_error(dma_error), .delivered(delivered), .lost(host_lost)
  );
  slow_path_tx from_host (
      .clk(clk), .rst(rst), .enable(enable), .tick(tick), .post_valid(tx_post), .post_data(post_data), .done_addr(tx_done_addr),
      .free_words(slow_free_out), .dma_valid(dma_valid[0]), .dma_read(dma_read[0]), .dma_addr(dma_addr[31:0]),
      .dma_words(dma_words[9:0]), .dma_data(dma_data[63:0]), .dma_done(dma_done[0]), .dma_error(dma_error),
      .read_tag(m_tag), .rsp_valid(rsp_valid), .rsp_error(rsp_error), .rsp_tag(rsp_tag), .rsp_data(rsp_data),
      .out_valid(slow_wr), .out_data(slow_wr_data), .out_last(slow_wr_last), .out_cancel(slow_cancel),
      .status(tx_status), .reported(tx_reported), .refused(tx_refused), .failed(tx_failed), .timed_out(tx_timed_out)
  );
  dma_engine dma (
      .clk(clk), .rst(rst), .valid(dma_valid), .read(dma_read), .addr(dma_addr), .words(dma_words), .data(dma_data),
      .pop(dma_pop), .accept(dma_accept), .done(dma_done), .error(dma_error), .m_start(m_start), .m_read(m_read),
      .m_addr(m_addr), .m_words(m_words), .m_data(m_data), .m_pop(m_pop), .m_accept(m_accept), .m_done(m_done),
      .m_error(m_error)
  );

  // Output. A packet of the fast path that is not whole when its card is no longer served is taken back.
  wire fast_done, slow_done, out_overflow;
  output_stage #(.CAP_WORDS(OUT_CAP_WORDS)) output_side (
      .clk(clk), .rst(rst), .fast_valid(out_wr), .fast_data(out_wr_data), .fast_last(out_wr_last),
      .fast_cancel(!serving), .fast_free(fast_free_out), .slow_valid(slow_wr), .slow_data(slow_wr_data),
      .slow_last(slow_wr_last), .slow_cancel(slow_cancel), .slow_free(slow_free_out), .overflow(out_overflow),
      .fast_done(fast_done), .slow_done(slow_done), .m_axis_tdata(tx_data), .m_axis_tkeep(tx_keep),
      .m_axis_tvalid(tx_valid), .m_axis_tready(tx_ready), .m_axis_tlast(tx_last)
  );

  // Counters; what is lost many at a time is added.
  reg [EVENTS-1:0] events;
  wire aborted = m_done && m_aborted;
  always_ff @(posedge clk) begin
    events <= 0;
    events[nic_pkg::EV_RX_CUT:0] <= in_events[3:0];
    events[nic_pkg::EV_RX_NO_SFD] <= rx_no_sfd;
    events[nic_pkg::EV_RX_CROWDED] <= rx_crowded;
    events[nic_pkg::EV_RX_DISABLED] <= rx_refused;
    events[nic_pkg::EV_SLOW_NO_PORT:nic_pkg::EV_DROP_TTL] <= in_events[9:4];
    events[nic_pkg::EV_DROP_STALE] <= stale_packet;
    events[nic_pkg::EV_DROP_HOST] <= host_lost;
    events[nic_pkg::EV_TX_REFUSED] <= tx_refused;
    events[nic_pkg::EV_TX_FAILED] <= tx_failed;
    events[nic_pkg::EV_REQ_SENT] <= message_sent && !message_failed && message_kind == nic_pkg::MSG_REQ;
    events[nic_pkg::EV_RES_SENT] <= message_sent && !message_failed && message_kind == nic_pkg::MSG_RES;
    events[nic_pkg::EV_BURSTS_SENT] <= burst_sent;
    events[nic_pkg::EV_BURSTS_EMPTY] <= burst_empty;
    events[nic_pkg::EV_TX_FAST] <= fast_done;
    events[nic_pkg::EV_TX_SLOW] <= slow_done;
    events[nic_pkg::EV_TX_FRAMES] <= tx_sent;
    events[nic_pkg::EV_TX_CUT] <= tx_cut;
    events[nic_pkg::EV_RX_TO_HOST] <= delivered;
    events[nic_pkg::EV_BUS_DISCONNECTS] <= m_disconnected;
    events[nic_pkg::EV_BUS_ABORTS] <= aborted;
    events[nic_pkg::EV_PEER_RESYNCS] <= link_anew;
    events[EVENTS-1:nic_pkg::EV_DROP_FIFO] <= drops;
  end
  wire rd_counter, counter_done;
  wire [CW-1:0] rd_index;
  wire [63:0] counter_data;
  event_counters #(.EVENTS(EVENTS)) counters (
      .clk(clk), .rst(rst), .events(events), .flushed(fast_flushed), .flushed_packets(fast_flushed_packets),
      .flush_room(flush_room), .burst_failed(burst_failed), .failed_packets(failed_packets), .parity(parity),
      .rd_valid(rd_counter), .rd_index(rd_index), .rd_done(counter_done), .rd_data(counter_data)
  );
  wire unused = |dma_pop || |dma_accept;

  register_file #(.NICS(NICS), .CAP_WORDS(CAP_WORDS), .OUT_CAP_WORDS(OUT_CAP_WORDS)) registers (
      .clk(clk), .rst(rst), .wr_valid(wr_register), .wr_addr(wr_addr[11:0]), .wr_data(wr_data), .rd_valid(rd_valid),
      .rd_addr(rd_addr), .rd_done(rd_done), .rd_data(rd_data), .control(control), .own_id(own_id), .own_mac(own_mac),
      .grant_min_words(grant_min_words), .policy(policy), .quantum_words(quantum_words), .patience(patience),
      .rx_desc_base(rx_desc_base), .rx_buffer_base(rx_buffer_base), .rx_tail(rx_tail), .tx_done_addr(tx_done_addr),
      .peer_base(peer_base), .peer_present(peer_present), .tx_post(tx_post), .peer_resync(peer_resync),
      .post_data(post_data), .tx_status(tx_status), .peer_state(peer_state), .wr_rule(wr_rule),
      .wr_commit(wr_commit), .wr_policy(wr_policy), .rd_rule(rd_rule), .rd_word(rd_word), .rule_done(rule_done),
      .rule_data(rule_data), .rule_status(rule_status), .rule_policy(rule_policy), .irq_rx(delivered),
      .irq_tx(tx_reported),
      .errors({in_overflow || out_overflow, tx_cut, in_events[3], link_lost, abandoned,
               burst_error || mail_error, tx_refused, tx_timed_out, parity, aborted}),
      .irq(irq), .rd_counter(rd_counter), .rd_index(rd_index), .counter_done(counter_done),
      .counter_data(counter_data)
  );
endmodule

`default_nettype wire

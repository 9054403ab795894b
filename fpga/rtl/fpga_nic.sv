// The NIC: Gigabit MAC on GMII at 125 MHz, packet logic and PCI-X-like bus at 66.67 MHz.
//
// A destination is a card's number. Within the card, peers are counted without a gap: destination d is peer slot
// (d xor own_id) - 1, and slot 0 before the subtraction is the card itself, which stands for the slow path.
`default_nettype none

module fpga_nic #(
    parameter NICS = 4,               // cards that can be addressed; 4 or 8
    parameter CAP_WORDS = 1920,       // of every input FIFO
    parameter OUT_CAP_WORDS = 1920    // of the output FIFOs
) (
    input  wire        mac_clk,
    input  wire        mac_rst,
    input  wire [7:0]  gmii_rxd,
    input  wire        gmii_rx_dv,
    input  wire        gmii_rx_er,
    output wire [7:0]  gmii_txd,
    output wire        gmii_tx_en,
    output wire        gmii_tx_er,
    input  wire        pci_clk,
    input  wire        pci_rst,
    input  wire [31:0] bar,           // as configuration has set it
    output wire        irq,
    output wire        req,
    input  wire        gnt,
    output wire        frame_o,
    output wire        irdy_o,
    output wire [3:0]  cmd_o,
    output wire [63:0] ad_o,
    output wire        devsel_o,
    output wire        trdy_o,
    output wire        disconnect_o,
    input  wire        frame_i,
    input  wire        irdy_i,
    input  wire [3:0]  cmd_i,
    input  wire [63:0] ad_i,
    input  wire        devsel_i,
    input  wire        trdy_i,
    input  wire        disconnect_i
);
  localparam EW = $clog2(NICS);
  localparam PEERS = NICS - 1;
  localparam PW = $clog2(PEERS);
  localparam QW = $clog2(2 * PEERS);
  localparam EVENTS = nic_pkg::EV_DROP_FIFO + 2 * NICS;
  wire clk = pci_clk;
  wire rst = pci_rst;

  // Configuration.
  wire [5:0] control;
  wire [2:0] own_id;
  wire [47:0] own_mac, mac_data;
  wire [EW:0] mac_addr;
  wire [11:0] grant_min_words;
  wire irq_enable, irq_clear, tx_post;
  wire [63:0] rx_desc_base, rx_buffer_base;
  wire [31:0] rx_tail, tx_done_addr;
  wire [42:0] tx_post_data;
  wire [127:0] peer_base;
  wire [32*NICS-1:0] route_value, route_mask;
  wire [80*NICS-1:0] class_value, class_mask;
  wire [NICS-1:0] route_valid, class_enable;
  wire [3*NICS-1:0] route_nic;
  reg [EVENTS-1:0] events;
  wire enable = control[0];
  wire [EW-1:0] own = own_id[EW-1:0];

  // Receive MAC and clock crossing.
  wire [7:0] rx_byte;
  wire rx_byte_valid, rx_byte_last;
  wire [1:0] rx_byte_user;
  gmii_mac_rx mac_rx (
      .clk(mac_clk), .rst(mac_rst), .gmii_rxd(gmii_rxd), .gmii_rx_dv(gmii_rx_dv), .gmii_rx_er(gmii_rx_er),
      .m_axis_tdata(rx_byte), .m_axis_tvalid(rx_byte_valid), .m_axis_tlast(rx_byte_last), .m_axis_tuser(rx_byte_user)
  );
  wire [63:0] rx_word;
  wire [2:0] rx_word_bytes;
  wire rx_word_valid, rx_word_last, rx_fifo_full, rx_valid;
  wire [1:0] rx_word_user;
  mac_gearbox_rx gearbox_rx (
      .clk(mac_clk), .rst(mac_rst), .s_axis_tdata(rx_byte), .s_axis_tvalid(rx_byte_valid),
      .s_axis_tlast(rx_byte_last), .s_axis_tuser(rx_byte_user), .m_axis_tdata(rx_word),
      .m_axis_tbytes(rx_word_bytes), .m_axis_tvalid(rx_word_valid), .m_axis_tlast(rx_word_last),
      .m_axis_tuser(rx_word_user)
  );
  wire [69:0] rx;
  wire [4:0] rx_level;
  async_fifo #(.W(70), .AW(4)) rx_cdc (
      .wr_clk(mac_clk), .wr_rst(mac_rst), .wr_en(rx_word_valid),
      .wr_data({rx_word_user, rx_word_bytes, rx_word_last, rx_word}), .wr_full(rx_fifo_full), .wr_level(rx_level),
      .rd_clk(clk), .rd_rst(rst), .rd_en(rx_valid), .rd_data(rx), .rd_valid(rx_valid)
  );

  // Registered once: the FIFO's memory is read across its width. A card that is not enabled takes nothing, and
  // begins and stops at a frame's boundary.
  reg [69:0] rx_q;
  reg rx_q_valid, rx_inside, rx_open;
  always @(posedge clk) begin
    rx_q <= rx;
    rx_q_valid <= rx_valid && (rx_inside ? rx_open : enable);
    if (rx_valid) begin
      rx_inside <= !rx[64];
      if (!rx_inside) rx_open <= enable;
    end
    if (rst) begin
      rx_q_valid <= 1'b0;
      rx_inside <= 1'b0;
      rx_open <= 1'b0;
    end
  end

  // Input processing.
  wire [63:0] in_data;
  wire [2:0] in_bytes, in_dest;
  wire in_valid, in_last, in_user, in_high;
  wire [7:0] in_events;
  input_processing #(.NICS(NICS)) processing (
      .clk(clk), .rst(rst), .s_axis_tdata(rx_q[63:0]), .s_axis_tbytes(rx_q[67:65]), .s_axis_tvalid(rx_q_valid),
      .s_axis_tlast(rx_q[64]), .s_axis_tuser(rx_q[69:68]), .own_id(own_id), .own_mac(own_mac),
      .write_source_mac(control[1]), .drop_bad_checksum(control[2]), .ttl_to_host(control[3]),
      .route_value(route_value), .route_mask(route_mask), .route_valid(route_valid), .route_nic(route_nic),
      .class_value(class_value), .class_mask(class_mask), .class_enable(class_enable), .mac_addr(mac_addr),
      .mac_data(mac_data), .m_axis_tdata(in_data), .m_axis_tbytes(in_bytes), .m_axis_tvalid(in_valid),
      .m_axis_tlast(in_last), .m_axis_tuser(in_user), .m_axis_tdest(in_dest), .m_axis_thigh(in_high),
      .events(in_events)
  );
  wire [EW-1:0] in_slot = in_dest[EW-1:0] ^ own;
  wire [EW-1:0] in_peer = in_slot - 1'b1;
  wire in_slow = in_slot == 0;

  // Input FIFOs: the slow path's pair, and the peers'.
  wire slow_dropped, slow_dropped_high, slow_len_queue, slow_load, slow_queue, slow_rd, slow_free;
  wire [23:0] slow_used;
  wire [15:0] slow_packets;
  wire [10:0] slow_len;
  wire [63:0] slow_word;
  wire [11:0] slow_free_words;
  queue_bank #(.PAIRS(1), .CAP_WORDS(CAP_WORDS)) slow_bank (
      .clk(clk), .rst(rst), .s_axis_tdata(in_data), .s_axis_tbytes(in_bytes), .s_axis_tvalid(in_valid && in_slow),
      .s_axis_tlast(in_last), .s_axis_tuser(in_user), .s_axis_tqueue(in_high), .dropped(slow_dropped),
      .dropped_queue(slow_dropped_high), .used_words(slow_used), .packets(slow_packets),
      .len_queue(slow_len_queue), .len_offset(8'd0), .len_bytes(slow_len), .rd_load(slow_load),
      .rd_queue(slow_queue), .rd_en(slow_rd), .rd_data(slow_word), .rd_free(slow_free),
      .rd_free_words(slow_free_words)
  );
  wire fast_dropped, fast_load, fast_rd, fast_free;
  wire [QW-1:0] fast_dropped_queue, fast_len_queue, fast_queue;
  wire [24*PEERS-1:0] fast_used;
  wire [16*PEERS-1:0] fast_packets;
  wire [7:0] fast_len_offset;
  wire [10:0] fast_len;
  wire [63:0] fast_word;
  wire [11:0] fast_free_words;
  queue_bank #(.PAIRS(PEERS), .CAP_WORDS(CAP_WORDS)) fast_bank (
      .clk(clk), .rst(rst), .s_axis_tdata(in_data), .s_axis_tbytes(in_bytes), .s_axis_tvalid(in_valid && !in_slow),
      .s_axis_tlast(in_last), .s_axis_tuser(in_user), .s_axis_tqueue({in_peer[PW-1:0], in_high}),
      .dropped(fast_dropped), .dropped_queue(fast_dropped_queue), .used_words(fast_used), .packets(fast_packets),
      .len_queue(fast_len_queue), .len_offset(fast_len_offset), .len_bytes(fast_len), .rd_load(fast_load),
      .rd_queue(fast_queue), .rd_en(fast_rd), .rd_data(fast_word), .rd_free(fast_free),
      .rd_free_words(fast_free_words)
  );

  // The bus target and what arrives through it.
  wire wr_valid, rd_valid, rd_done, block_valid;
  wire [31:0] wr_addr, rd_addr;
  wire [63:0] wr_data, rd_data, target_ad;
  wire [9:0] block_words;
  wire [3:0] block_requester;
  pcix_target target (
      .clk(clk), .rst(rst), .base(bar), .window(32'hffff_0000), .want_disconnect(control[5]), .frame_i(frame_i),
      .irdy_i(irdy_i), .cmd_i(cmd_i), .ad_i(ad_i), .devsel_o(devsel_o), .trdy_o(trdy_o),
      .disconnect_o(disconnect_o), .ad_o(target_ad), .wr_valid(wr_valid), .wr_addr(wr_addr), .wr_data(wr_data),
      .rd_valid(rd_valid), .rd_addr(rd_addr), .rd_done(rd_done), .rd_data(rd_data), .block_valid(block_valid),
      .block_words(block_words), .block_requester(block_requester)
  );
  wire wr_register = wr_valid && wr_addr[15:12] == 4'd0;
  wire wr_mailbox = wr_valid && wr_addr[15:12] == nic_pkg::AREA_MAILBOX[15:12];
  wire wr_split = wr_valid && wr_addr[15:12] == nic_pkg::AREA_SPLIT[15:12];
  wire wr_burst = wr_valid && wr_addr[15];
  wire [EW-1:0] mail_source = wr_addr[6+:EW];
  wire [EW-1:0] mail_slot = mail_source ^ own;
  wire [EW-1:0] mail_peer = mail_slot - 1'b1;
  wire mail_req = wr_mailbox && !wr_addr[3];
  wire mail_res = wr_mailbox && wr_addr[3];

  // Fast path, output side.
  wire out_wr, out_wr_last, tail_valid, protocol_error;
  wire [63:0] out_wr_data, fast_out_data, slow_out_data;
  wire [2:0] tail_source;
  wire [11:0] tail_high, tail_low, fast_free_out, slow_free_out;
  burst_receiver receiver (
      .clk(clk), .rst(rst), .wr_valid(wr_burst), .wr_source(wr_addr[14:12]), .wr_data(wr_data), .out_valid(out_wr),
      .out_data(out_wr_data), .out_last(out_wr_last), .req_valid(tail_valid), .req_source(tail_source),
      .req_high(tail_high), .req_low(tail_low), .protocol_error(protocol_error)
  );
  wire res_valid, res_ready;
  wire [EW-1:0] res_dest;
  wire [11:0] res_high, res_low;
  response_scheduler #(.NICS(NICS)) responses (
      .clk(clk), .rst(rst), .grant_min_words(grant_min_words), .high_first(control[4]), .free_words(fast_free_out),
      .req_valid(mail_req || tail_valid), .req_trailing(tail_valid),
      .req_source(tail_valid ? tail_source[EW-1:0] : mail_source), .req_high(tail_valid ? tail_high : wr_data[30:19]),
      .req_low(tail_valid ? tail_low : wr_data[14:3]), .res_valid(res_valid), .res_ready(res_ready),
      .res_dest(res_dest), .res_high(res_high), .res_low(res_low)
  );

  // Fast path, input side.
  wire req_valid, req_ready, token_return, burst_sent, burst_empty;
  wire [PW-1:0] req_peer, burst_peer, token_peer;
  wire [11:0] req_high, req_low;
  wire [EW-1:0] req_slot = {{(EW-PW){1'b0}}, req_peer} + 1'b1;
  wire [EW-1:0] req_dest = req_slot ^ own;
  wire [EW-1:0] burst_slot = {{(EW-PW){1'b0}}, burst_peer} + 1'b1;
  wire [EW-1:0] burst_dest = burst_slot ^ own;
  request_scheduler #(.PEERS(PEERS)) requests (
      .clk(clk), .rst(rst), .used_words(fast_used), .req_valid(req_valid), .req_ready(req_ready), .req_peer(req_peer),
      .req_high(req_high), .req_low(req_low), .res_valid(mail_res), .res_peer(mail_peer[PW-1:0]),
      .token_return(token_return), .token_peer(token_peer)
  );
  wire [3:0] dma_valid, dma_pop, dma_done;
  wire [3:0] dma_read;
  wire [127:0] dma_addr;
  wire [39:0] dma_words;
  wire [255:0] dma_data;
  burst_scheduler #(.PEERS(PEERS)) bursts (
      .clk(clk), .rst(rst), .own_id({1'b0, own_id}), .res_valid(mail_res), .res_peer(mail_peer[PW-1:0]),
      .res_high(wr_data[30:19]), .res_low(wr_data[14:3]), .used_words(fast_used), .packets(fast_packets),
      .len_queue(fast_len_queue), .len_offset(fast_len_offset), .len_bytes(fast_len), .rd_load(fast_load),
      .rd_queue(fast_queue), .rd_en(fast_rd), .rd_data(fast_word), .rd_free(fast_free),
      .rd_free_words(fast_free_words), .dma_valid(dma_valid[3]), .burst_peer(burst_peer),
      .burst_dest({{(4-EW){1'b0}}, burst_dest}), .dma_words(dma_words[39:30]), .dma_data(dma_data[255:192]),
      .dma_pop(dma_pop[3]), .dma_done(dma_done[3]), .token_return(token_return), .token_peer(token_peer),
      .sent(burst_sent), .sent_empty(burst_empty)
  );
  assign dma_read[3:1] = 3'd0;
  assign dma_addr[127:96] = {peer_base[16*burst_dest+:16], nic_pkg::AREA_BURST | {1'b0, own_id, 12'd0}};
  message_sender #(.NICS(NICS)) messages (
      .clk(clk), .rst(rst), .own_id({1'b0, own_id}), .peer_base(peer_base), .req_valid(req_valid),
      .req_ready(req_ready), .req_dest({{(3-EW){1'b0}}, req_dest}), .req_high(req_high), .req_low(req_low),
      .res_valid(res_valid), .res_ready(res_ready), .res_dest({{(3-EW){1'b0}}, res_dest}), .res_high(res_high),
      .res_low(res_low), .dma_valid(dma_valid[2]), .dma_addr(dma_addr[95:64]), .dma_data(dma_data[191:128]),
      .dma_done(dma_done[2])
  );
  assign dma_words[29:20] = 10'd1;

  // Slow path.
  wire delivered, slow_wr, slow_wr_last;
  wire [63:0] slow_wr_data;
  slow_path_rx to_host (
      .clk(clk), .rst(rst), .enable(enable), .desc_base(rx_desc_base), .buffer_base(rx_buffer_base), .tail(rx_tail),
      .packets(slow_packets), .len_queue(slow_len_queue), .len_bytes(slow_len), .rd_load(slow_load),
      .rd_queue(slow_queue), .rd_en(slow_rd), .rd_data(slow_word), .rd_free(slow_free),
      .rd_free_words(slow_free_words), .dma_valid(dma_valid[1]), .dma_addr(dma_addr[63:32]),
      .dma_words(dma_words[19:10]), .dma_data(dma_data[127:64]), .dma_pop(dma_pop[1]), .dma_done(dma_done[1]),
      .delivered(delivered)
  );
  slow_path_tx from_host (
      .clk(clk), .rst(rst), .post_valid(tx_post), .post_data(tx_post_data), .done_addr(tx_done_addr),
      .free_words(slow_free_out), .dma_valid(dma_valid[0]), .dma_read(dma_read[0]), .dma_addr(dma_addr[31:0]),
      .dma_words(dma_words[9:0]), .dma_data(dma_data[63:0]), .dma_done(dma_done[0]), .split_valid(wr_split),
      .split_data(wr_data), .out_valid(slow_wr), .out_data(slow_wr_data), .out_last(slow_wr_last)
  );
  reg irq_pending;
  assign irq = irq_pending && irq_enable;
  always @(posedge clk) irq_pending <= !rst && (delivered || (irq_pending && !irq_clear));

  // DMA and bus master.
  wire m_start, m_pop, m_done, m_aborted, m_disconnected;
  wire [3:0] m_cmd;
  wire [31:0] m_addr;
  wire [9:0] m_words;
  wire [63:0] m_data, m_read_data, master_ad;
  dma_engine dma (
      .clk(clk), .rst(rst), .valid(dma_valid), .read(dma_read), .addr(dma_addr), .words(dma_words), .data(dma_data),
      .pop(dma_pop), .done(dma_done), .m_start(m_start), .m_cmd(m_cmd), .m_addr(m_addr), .m_words(m_words),
      .m_data(m_data), .m_pop(m_pop), .m_done(m_done)
  );
  pcix_master master (
      .clk(clk), .rst(rst), .id({1'b0, own_id}), .start(m_start), .cmd(m_cmd), .addr(m_addr), .words(m_words),
      .data(m_data), .pop(m_pop), .done(m_done), .aborted(m_aborted), .disconnected(m_disconnected),
      .read_data(m_read_data), .req(req), .gnt(gnt), .frame_o(frame_o), .irdy_o(irdy_o), .cmd_o(cmd_o),
      .ad_o(master_ad), .devsel_i(devsel_i), .trdy_i(trdy_i), .disconnect_i(disconnect_i), .ad_i(ad_i)
  );
  assign ad_o = master_ad | target_ad;

  // Output FIFOs and transmit MAC.
  wire fast_packet, fast_rd_out, fast_done, slow_packet, slow_rd_out, slow_done;
  output_fifo #(.CAP_WORDS(OUT_CAP_WORDS)) fast_out (
      .clk(clk), .rst(rst), .wr_valid(out_wr), .wr_data(out_wr_data), .wr_last(out_wr_last), .free_words(fast_free_out),
      .rd_packet(fast_packet), .rd_en(fast_rd_out), .rd_data(fast_out_data), .rd_done(fast_done)
  );
  output_fifo #(.CAP_WORDS(OUT_CAP_WORDS)) slow_out (
      .clk(clk), .rst(rst), .wr_valid(slow_wr), .wr_data(slow_wr_data), .wr_last(slow_wr_last),
      .free_words(slow_free_out), .rd_packet(slow_packet), .rd_en(slow_rd_out), .rd_data(slow_out_data),
      .rd_done(slow_done)
  );
  wire tx_valid, tx_last, tx_fifo_full, tx_fifo_valid, tx_fifo_rd;
  wire [63:0] tx_data;
  wire [2:0] tx_bytes;
  wire [4:0] tx_level;
  wire [67:0] tx;
  output_scheduler out_scheduler (
      .clk(clk), .rst(rst), .slow_packet(slow_packet), .slow_rd_en(slow_rd_out), .slow_data(slow_out_data),
      .slow_done(slow_done), .fast_packet(fast_packet), .fast_rd_en(fast_rd_out), .fast_data(fast_out_data),
      .fast_done(fast_done), .m_axis_tvalid(tx_valid), .m_axis_tdata(tx_data), .m_axis_tbytes(tx_bytes),
      .m_axis_tlast(tx_last), .m_axis_room(tx_level <= 5'd13)
  );
  async_fifo #(.W(68), .AW(4)) tx_cdc (
      .wr_clk(clk), .wr_rst(rst), .wr_en(tx_valid), .wr_data({tx_bytes, tx_last, tx_data}), .wr_full(tx_fifo_full),
      .wr_level(tx_level), .rd_clk(mac_clk), .rd_rst(mac_rst), .rd_en(tx_fifo_rd && tx_fifo_valid), .rd_data(tx),
      .rd_valid(tx_fifo_valid)
  );
  wire [7:0] tx_byte;
  wire tx_byte_valid, tx_byte_last, tx_byte_ready;
  mac_gearbox_tx gearbox_tx (
      .clk(mac_clk), .rst(mac_rst), .s_axis_tdata(tx[63:0]), .s_axis_tbytes(tx[67:65]), .s_axis_tvalid(tx_fifo_valid),
      .s_axis_tlast(tx[64]), .s_axis_tready(tx_fifo_rd), .m_axis_tdata(tx_byte), .m_axis_tvalid(tx_byte_valid),
      .m_axis_tlast(tx_byte_last), .m_axis_tready(tx_byte_ready)
  );
  gmii_mac_tx mac_tx (
      .clk(mac_clk), .rst(mac_rst), .s_axis_tdata(tx_byte), .s_axis_tvalid(tx_byte_valid), .s_axis_tlast(tx_byte_last),
      .s_axis_tready(tx_byte_ready), .gmii_txd(gmii_txd), .gmii_tx_en(gmii_tx_en), .gmii_tx_er(gmii_tx_er)
  );

  // Counters. The input FIFOs' drops are counted by destination number and class.
  wire [EW-1:0] dropped_slot = {{(EW-PW){1'b0}}, fast_dropped_queue[QW-1:1]} + 1'b1;
  wire [EW-1:0] dropped_dest = dropped_slot ^ own;
  reg [2*NICS-1:0] drops;
  always @* begin
    drops = 0;
    if (fast_dropped) drops[{dropped_dest, fast_dropped_queue[0]}] = 1'b1;
    if (slow_dropped) drops[{own, slow_dropped_high}] = 1'b1;
  end
  always @(posedge clk) begin
    events <= 0;
    events[7:0] <= in_events;
    events[nic_pkg::EV_REQ_SENT] <= req_ready;
    events[nic_pkg::EV_RES_SENT] <= res_ready;
    events[nic_pkg::EV_BURSTS_SENT] <= burst_sent;
    events[nic_pkg::EV_BURSTS_EMPTY] <= burst_empty;
    events[nic_pkg::EV_TX_FAST] <= fast_done;
    events[nic_pkg::EV_TX_SLOW] <= slow_done;
    events[nic_pkg::EV_RX_TO_HOST] <= delivered;
    events[nic_pkg::EV_BUS_DISCONNECTS] <= m_disconnected;
    events[EVENTS-1:nic_pkg::EV_DROP_FIFO] <= drops;
  end
  register_file #(.NICS(NICS), .EVENTS(EVENTS)) registers (
      .clk(clk), .rst(rst), .wr_valid(wr_register), .wr_addr(wr_addr[11:0]), .wr_data(wr_data), .rd_valid(rd_valid),
      .rd_addr(rd_addr[11:0]), .rd_done(rd_done), .rd_data(rd_data), .events(events), .control(control),
      .own_id(own_id), .own_mac(own_mac), .grant_min_words(grant_min_words), .irq_enable(irq_enable),
      .irq_clear(irq_clear), .rx_desc_base(rx_desc_base), .rx_buffer_base(rx_buffer_base), .rx_tail(rx_tail),
      .tx_post(tx_post), .tx_post_data(tx_post_data), .tx_done_addr(tx_done_addr), .peer_base(peer_base),
      .route_value(route_value), .route_mask(route_mask), .route_valid(route_valid), .route_nic(route_nic),
      .class_value(class_value), .class_mask(class_mask), .class_enable(class_enable), .mac_addr(mac_addr),
      .mac_data(mac_data)
  );
endmodule

`default_nettype wire

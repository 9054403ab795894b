// SPDX-License-Identifier: MIT OR Apache-2.0
// Input side, bursts. Answers the responses received in round-robin order, each with one burst: header, high-class
// packets, low-class packets, and a trailing REQ with what is left, read when it is sent. If not even the first
// packets fit the grant the burst is empty, but it is sent. The words go through a small FIFO to DMA channel iv, in
// sequences of at most 512 words; the generator keeps up with the bus, a word a cycle. The first sequence begins at the
// peer's window, the others a word further on, so that the peer knows a burst's first word.
//
// If a sequence fails, the rest of the burst is not sent: its packets are thrown away, and how many did not arrive whole
// is told.
`default_nettype none

module burst_scheduler #(
    parameter PEERS = 3,
    parameter PW = $clog2(PEERS),
    parameter QW = $clog2(2 * PEERS)
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [3:0]          own_id,
    input  wire [PEERS-1:0]    ready,        // the link is up
    input  wire [PEERS-1:0]    clear,        // pulse: the exchange with the peer begins anew
    // Responses received: grants in words.
    input  wire                res_valid,
    input  wire [PW-1:0]       res_peer,
    input  wire [11:0]         res_high,
    input  wire [11:0]         res_low,
    // Input FIFOs (see queue_bank).
    input  wire [24*PEERS-1:0] used_words,
    input  wire [16*PEERS-1:0] packets,
    output reg  [QW-1:0]       len_queue,
    output reg  [7:0]          len_offset,
    input  wire [10:0]         len_bytes,
    output reg                 rd_load,
    output wire [QW-1:0]       rd_queue,
    output wire                rd_en,
    input  wire [63:0]         rd_data,
    output reg                 rd_free,
    output reg  [11:0]         rd_free_words,
    // DMA channel iv.
    output wire                dma_valid,
    output reg  [PW-1:0]       burst_peer,
    input  wire [3:0]          burst_dest,   // the peer's number
    output reg                 dma_later,    // not the burst's first sequence
    output wire [9:0]          dma_words,
    output wire [63:0]         dma_data,
    input  wire                dma_pop,
    input  wire                dma_accept,
    input  wire                dma_done,
    input  wire                dma_error,
    output reg                 asks,         // pulse: its trailing REQ is made and is not null
    // A burst is under way; it has left, or failed, and so many packets did not arrive.
    output wire                busy,
    output reg                 failed,
    output reg  [7:0]          failed_packets,
    output reg                 token_return,
    output wire [PW-1:0]       token_peer,
    output reg                 sent,
    output reg                 sent_empty
);
  localparam [3:0] IDLE = 4'd0, SCAN_HIGH = 4'd1, SCAN_LOW = 4'd2, HEAD = 4'd3, LENGTH = 4'd4, PKT = 4'd5,
      DATA = 4'd6, SETTLE = 4'd7, TAIL = 4'd8, DRAIN = 4'd9;

  reg [3:0] state;
  reg [PEERS-1:0] pending;
  reg [11:0] grant_high[0:PEERS-1];
  reg [11:0] grant_low[0:PEERS-1];
  wire [PEERS-1:0] grant;
  wire [PW-1:0] pick;
  wire any;
  wire take = state == IDLE && any;
  assign busy = state != IDLE;
  rr_arbiter #(.N(PEERS), .IW(PW)) pointer (
      .clk(clk), .rst(rst), .req(pending & ready), .take(take), .grant(grant), .index(pick), .any(any)
  );
  assign token_peer = burst_peer;

  // Scan.
  reg scan_start, high_class;
  wire scan_done;
  wire [7:0] scan_offset, scan_count;
  wire [11:0] scan_words;
  reg [11:0] scan_grant;
  reg [7:0] scan_packets;
  length_scan scan (
      .clk(clk), .rst(rst), .start(scan_start), .packets(scan_packets), .grant_words(scan_grant),
      .offset(scan_offset), .len_bytes(len_bytes), .done(scan_done), .count(scan_count), .words(scan_words)
  );

  // Generator.
  reg [7:0] n_high, n_low, left;   // packets of the burst; packets left of the class in progress
  reg [11:0] burst_words;          // packets with headers
  reg [10:0] length;
  reg [7:0] data_left;
  reg [1:0] settle;
  wire [7:0] data_words = length[10:3] + {7'd0, length[2:0] != 0};
  wire last_of_class = left == 8'd1;
  wire [4:0] level;
  wire room = level <= 5'd12;
  reg out_valid, out_is_data, out_last;   // the last word of a packet
  reg [63:0] out_word;
  assign rd_en = state == DATA && room;
  assign rd_queue = {burst_peer, high_class};
  wire [23:0] used_of[0:PEERS-1];
  wire [15:0] packets_of[0:PEERS-1];
  genvar g;
  generate
    for (g = 0; g < PEERS; g = g + 1) begin : peers
      assign used_of[g] = used_words[24*g+:24];
      assign packets_of[g] = packets[16*g+:16];
    end
  endgenerate
  wire [23:0] used_now = used_of[burst_peer];

  always @* begin
    len_queue = {burst_peer, high_class};
    len_offset = scan_offset;
    if (state == LENGTH) len_offset = 0;
    else if (state == PKT || state == DATA) begin
      // The next packet's length: the one behind, or the first of the low class.
      if (last_of_class) len_queue = {burst_peer, 1'b0};
      len_offset = last_of_class ? 8'd0 : 8'd1;
    end
  end

  // DMA side.
  reg [12:0] remaining;
  wire [4:0] prefill = (remaining < 13'd8) ? remaining[4:0] : 5'd8;
  reg started;
  wire fifo_valid, fifo_full, fifo_last;
  wire [9:0] longest = dma_later ? 10'd511 : 10'd512;
  assign dma_words = (remaining > {3'd0, longest}) ? longest : remaining[9:0];
  // A register, because arbiter and address come behind it in the same cycle; not set again before `remaining` tells
  // of the sequence that is done.
  reg wanted;
  assign dma_valid = wanted;
  reg was_null;

  // After a failure the words go nowhere.
  reg sinks;
  sync_fifo #(.W(65), .AW(4)) out_fifo (
      .clk(clk), .rst(rst), .wr_en(out_valid), .wr_data({out_last, out_is_data ? rd_data : out_word}), .full(fifo_full),
      .rd_en(dma_pop || (sinks && fifo_valid)), .rd_data({fifo_last, dma_data}), .rd_valid(fifo_valid), .level(level)
  );

  // Which of the words on their way end a packet.
  wire arrived_last, tag_valid, tag_full;
  wire [6:0] tag_level;
  reg [7:0] arrived;   // packets
  sync_fifo #(.W(1), .AW(6)) tags (
      .clk(clk), .rst(rst || state == IDLE), .wr_en(dma_pop), .wr_data(fifo_last), .full(tag_full),
      .rd_en(dma_accept), .rd_data(arrived_last), .rd_valid(tag_valid), .level(tag_level)
  );
  wire unused = |{fifo_full, tag_valid, tag_full, tag_level};

  wire [63:0] tail = {nic_pkg::MSG_REQ, 1'b1, used_now == 0, 2'b00, own_id, burst_dest, 16'd0,
                      1'b0, used_now[23:12], 3'd0, 1'b0, used_now[11:0], 3'd0};

  reg [PEERS-1:0] pending_next;
  always_comb begin
    pending_next = pending & ~(take ? grant : {PEERS{1'b0}}) & ~clear;
    if (res_valid) pending_next[res_peer] = 1'b1;
  end

  always_ff @(posedge clk) begin
    scan_start <= 1'b0;
    rd_load <= 1'b0;
    rd_free <= 1'b0;
    out_valid <= 1'b0;
    out_is_data <= 1'b0;
    out_last <= 1'b0;
    token_return <= 1'b0;
    failed <= 1'b0;
    asks <= 1'b0;
    sent <= 1'b0;
    sent_empty <= 1'b0;
    wanted <= started && remaining != 0 && level >= prefill && !dma_done && !sinks && !rst;
    if (dma_done) begin
      remaining <= remaining - {3'd0, dma_words};
      dma_later <= 1'b1;
      if (dma_error) sinks <= 1'b1;
    end
    if (dma_accept && arrived_last) arrived <= arrived + 1'b1;
    case (state)
      IDLE: begin
        started <= 1'b0;
        sinks <= 1'b0;
        dma_later <= 1'b0;
        arrived <= 0;
        if (take) begin
          burst_peer <= pick;
          high_class <= 1'b1;
          scan_start <= 1'b1;
          scan_grant <= grant_high[pick];
          scan_packets <= packets_of[pick][15:8];
          state <= SCAN_HIGH;
        end
      end
      SCAN_HIGH:
        if (scan_done) begin
          n_high <= scan_count;
          burst_words <= scan_words;
          high_class <= 1'b0;
          scan_start <= 1'b1;
          scan_grant <= grant_low[burst_peer];
          scan_packets <= packets_of[burst_peer][7:0];
          state <= SCAN_LOW;
        end
      SCAN_LOW:
        if (scan_done) begin
          n_low <= scan_count;
          burst_words <= burst_words + scan_words;
          remaining <= {1'b0, burst_words} + {1'b0, scan_words} + 13'd2;
          state <= HEAD;
        end
      HEAD: begin
        started <= 1'b1;
        out_valid <= 1'b1;
        out_word <= {nic_pkg::MSG_BURST, 4'd0, own_id, burst_dest, 16'd0, n_high, n_low, 4'd0, burst_words};
        high_class <= n_high != 0;
        left <= (n_high != 0) ? n_high : n_low;
        rd_load <= 1'b1;
        settle <= 0;
        state <= (n_high == 0 && n_low == 0) ? SETTLE : LENGTH;
      end
      LENGTH: begin
        settle <= settle + 1'b1;
        length <= len_bytes;
        if (settle == 2'd3) state <= PKT;
      end
      PKT:
        if (room) begin
          out_valid <= 1'b1;
          out_word <= {nic_pkg::MSG_PKT, 4'd0, own_id, burst_dest, 36'd0, high_class, length};
          data_left <= data_words;
          rd_free_words <= {4'd0, data_words} + 12'd1;
          state <= DATA;
        end
      DATA:
        if (room) begin
          out_valid <= 1'b1;
          out_is_data <= 1'b1;
          data_left <= data_left - 1'b1;
          if (data_left == 8'd1) begin
            out_last <= 1'b1;
            rd_free <= 1'b1;
            length <= len_bytes;
            settle <= 0;
            if (!last_of_class) begin
              left <= left - 1'b1;
              state <= PKT;
            end else if (high_class && n_low != 0) begin
              high_class <= 1'b0;
              left <= n_low;
              rd_load <= 1'b1;
              state <= PKT;
            end else state <= SETTLE;
          end
        end
      SETTLE: begin
        // The occupancy shows the last packet's removal two cycles later.
        settle <= settle + 1'b1;
        if (settle == 2'd2) state <= TAIL;
      end
      TAIL:
        if (room) begin
          out_valid <= 1'b1;
          out_word <= tail;
          was_null <= used_now == 0;
          asks <= used_now != 0;
          state <= DRAIN;
        end
      default:
        if (sinks) begin
          if (!out_valid && level == 0) begin
            failed <= 1'b1;
            failed_packets <= n_high + n_low - arrived;
            state <= IDLE;
          end
        end else if (remaining == 0 && !(dma_done && dma_error)) begin
          token_return <= was_null;
          sent <= 1'b1;
          sent_empty <= burst_words == 0;
          state <= IDLE;
        end
    endcase
    if (res_valid) begin
      grant_high[res_peer] <= res_high;
      grant_low[res_peer] <= res_low;
    end
    pending <= pending_next;
    if (rst) begin
      state <= IDLE;
      pending <= 0;
      started <= 1'b0;
      remaining <= 0;
      sinks <= 1'b0;
      out_valid <= 1'b0;
      token_return <= 1'b0;
      failed <= 1'b0;
      asks <= 1'b0;
      sent <= 1'b0;
      sent_empty <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk)
    if (!rst) begin
      // The burst keeps within the grant, and the bus never outruns the generator.
      if (state == HEAD) assert (burst_words <= grant_high[burst_peer] + grant_low[burst_peer]);
      assert (!(dma_pop && !fifo_valid));
      assert (!(res_valid && pending[res_peer]));
      assert (!(dma_accept && !tag_valid));
      assert (!(dma_pop && sinks));
    end
`endif
endmodule

`default_nettype wire

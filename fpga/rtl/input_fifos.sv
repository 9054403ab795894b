// SPDX-License-Identifier: MIT OR Apache-2.0
// The input FIFOs: the slow path's pair, and one for each peer. A frame goes where its destination's number and its class
// say; what finds no room is told by the same two.
`default_nettype none

module input_fifos #(
    parameter NICS = 4,
    parameter CAP_WORDS = 1920,   // of each
    parameter EW = $clog2(NICS),
    parameter PEERS = NICS - 1,
    parameter QW = $clog2(2 * PEERS)
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [EW-1:0]       own,
    input  wire [63:0]         s_axis_tdata,
    input  wire [7:0]          s_axis_tkeep,
    input  wire                s_axis_tvalid,
    input  wire                s_axis_tlast,
    input  wire                s_axis_tuser,
    input  wire [2:0]          s_axis_tdest,
    input  wire                s_axis_thigh,
    output reg  [2*NICS-1:0]   drops,             // pulses: {destination, class}
    // Peers whose FIFOs are to be empty, and how many packets were thrown away for it.
    input  wire [PEERS-1:0]    flush,
    output wire                flushed,
    output wire [7:0]          flushed_packets,
    // The slow path's reader; see queue_bank.
    output wire [15:0]         slow_packets,
    input  wire                slow_len_queue,
    output wire [10:0]         slow_len_bytes,
    input  wire                slow_load,
    input  wire                slow_queue,
    input  wire                slow_rd_en,
    output wire [63:0]         slow_rd_data,
    input  wire                slow_free,
    input  wire [11:0]         slow_free_words,
    // The peers'.
    output wire [24*PEERS-1:0] fast_used_words,
    output wire [16*PEERS-1:0] fast_packets,
    input  wire [QW-1:0]       fast_len_queue,
    input  wire [7:0]          fast_len_offset,
    output wire [10:0]         fast_len_bytes,
    input  wire                fast_load,
    input  wire [QW-1:0]       fast_queue,
    input  wire                fast_rd_en,
    output wire [63:0]         fast_rd_data,
    input  wire                fast_free,
    input  wire [11:0]         fast_free_words
);
  localparam PW = $clog2(PEERS);
  wire [EW-1:0] slot = s_axis_tdest[EW-1:0] ^ own;
  wire [EW-1:0] peer = slot - 1'b1;
  wire slow = slot == 0;
  wire slow_dropped, slow_dropped_high, slow_flushed, fast_dropped;
  wire [QW-1:0] fast_dropped_queue;
  wire [23:0] slow_used_words;
  wire [7:0] slow_flushed_packets;
  wire unused = slow_flushed || |slow_flushed_packets || |slow_used_words || |s_axis_tdest;

  queue_bank #(.PAIRS(1), .CAP_WORDS(CAP_WORDS)) slow_bank (
      .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep),
      .s_axis_tvalid(s_axis_tvalid && slow), .s_axis_tlast(s_axis_tlast), .s_axis_tuser(s_axis_tuser),
      .s_axis_tqueue(s_axis_thigh), .dropped(slow_dropped), .dropped_queue(slow_dropped_high), .flush(1'b0),
      .flushed(slow_flushed), .flushed_packets(slow_flushed_packets), .used_words(slow_used_words),
      .packets(slow_packets), .len_queue(slow_len_queue), .len_offset(8'd0), .len_bytes(slow_len_bytes),
      .rd_load(slow_load), .rd_queue(slow_queue), .rd_en(slow_rd_en), .rd_data(slow_rd_data), .rd_free(slow_free),
      .rd_free_words(slow_free_words)
  );
  queue_bank #(.PAIRS(PEERS), .CAP_WORDS(CAP_WORDS)) fast_bank (
      .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep),
      .s_axis_tvalid(s_axis_tvalid && !slow), .s_axis_tlast(s_axis_tlast), .s_axis_tuser(s_axis_tuser),
      .s_axis_tqueue({peer[PW-1:0], s_axis_thigh}), .dropped(fast_dropped), .dropped_queue(fast_dropped_queue),
      .flush(flush), .flushed(flushed), .flushed_packets(flushed_packets), .used_words(fast_used_words),
      .packets(fast_packets), .len_queue(fast_len_queue), .len_offset(fast_len_offset), .len_bytes(fast_len_bytes),
      .rd_load(fast_load), .rd_queue(fast_queue), .rd_en(fast_rd_en), .rd_data(fast_rd_data), .rd_free(fast_free),
      .rd_free_words(fast_free_words)
  );

  wire [EW-1:0] dropped_slot = {{(EW - PW){1'b0}}, fast_dropped_queue[QW-1:1]} + 1'b1;
  wire [EW-1:0] dropped_dest = dropped_slot ^ own;
  always_comb begin
    drops = 0;
    if (fast_dropped) drops[{dropped_dest, fast_dropped_queue[0]}] = 1'b1;
    if (slow_dropped) drops[{own, slow_dropped_high}] = 1'b1;
  end
endmodule

`default_nettype wire

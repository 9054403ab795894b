// SPDX-License-Identifier: MIT OR Apache-2.0
// The counters of a card: events one at a time; the packets that are lost many at a time, by an emptied input FIFO or a
// failed burst; and words with wrong parity, which may come one after the other.
`default_nettype none

module event_counters #(
    parameter EVENTS = 40,
    parameter CW = $clog2(EVENTS)
) (
    input  wire              clk,
    input  wire              rst,
    input  wire [EVENTS-1:0] events,
    input  wire              flushed,          // pulse, with its packets
    input  wire [7:0]        flushed_packets,
    output wire              flush_room,       // FIFOs may be emptied
    input  wire              burst_failed,     // pulse, with its packets
    input  wire [7:0]        failed_packets,
    input  wire              parity,           // a word in each cycle
    input  wire              rd_valid,         // held until rd_done
    input  wire [CW-1:0]     rd_index,
    output wire              rd_done,
    output wire [63:0]       rd_data
);
  wire flushes_valid, flushes_full, add_ready;
  wire [7:0] flushes_amount;
  wire [4:0] flushes_level;
  reg cut_off;                 // a burst failed, and is to be counted
  reg [7:0] cut_off_packets;
  sync_fifo #(.W(8), .AW(4)) flushes (
      .clk(clk), .rst(rst), .wr_en(flushed && !flushes_full), .wr_data(flushed_packets), .full(flushes_full),
      .rd_en(flushes_valid && add_ready && !cut_off), .rd_data(flushes_amount), .rd_valid(flushes_valid),
      .level(flushes_level)
  );
  assign flush_room = flushes_level < 5'd12;
  reg [7:0] bad_words;         // not yet counted
  wire adds_words = add_ready && !cut_off && !flushes_valid;
  always_ff @(posedge clk) begin
    if (add_ready) cut_off <= 1'b0;
    if (burst_failed) begin
      cut_off <= failed_packets != 0;
      cut_off_packets <= failed_packets;
    end
    if (adds_words) bad_words <= {7'd0, parity};
    else if (parity && bad_words != 8'd255) bad_words <= bad_words + 1'b1;
    if (rst) begin
      cut_off <= 1'b0;
      bad_words <= 0;
    end
  end
  counter_bank #(.EVENTS(EVENTS)) counters (
      .clk(clk), .rst(rst), .events(events), .add_valid(cut_off || flushes_valid || bad_words != 0),
      .add_ready(add_ready),
      .add_addr(cut_off ? CW'(nic_pkg::EV_DROP_BURST)
          : flushes_valid ? CW'(nic_pkg::EV_DROP_PEER_DOWN) : CW'(nic_pkg::EV_BUS_PARITY)),
      .add_amount(cut_off ? cut_off_packets : flushes_valid ? flushes_amount : bad_words), .rd_valid(rd_valid), .rd_addr(rd_index),
      .rd_done(rd_done), .rd_data(rd_data)
  );
endmodule

`default_nettype wire

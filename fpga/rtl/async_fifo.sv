// SPDX-License-Identifier: MIT OR Apache-2.0
// First-word-fall-through FIFO between two clocks, with Gray-coded pointers through two flip-flops: of a pointer
// that is sampled while it changes, at most one bit is unsure, so the sample is the old value or the new one.
//
// Both resets begin together, at any time, and end each with its own clock (reset_sync), whichever side needed it: a
// pointer is never zero while the other side still has one of before. They act without a clock, because either clock
// may stand. A write to the full FIFO and a read from the empty one do nothing.
//
// Timing: the two synchronised pointers need a maximum delay of one period of the receiving clock, data path only, so
// that no two changes can pass each other; see doc/porting.md.
`default_nettype none

module async_fifo #(
    parameter W = 70,
    parameter AW = 4   // log2 of the depth
) (
    input  wire         wr_clk,
    input  wire         wr_rst,
    input  wire         wr_en,
    input  wire [W-1:0] wr_data,
    output wire         wr_full,
    output wire [AW:0]  wr_level,  // words stored, as the writer knows; never too few
    input  wire         rd_clk,
    input  wire         rd_rst,
    input  wire         rd_en,
    output wire [W-1:0] rd_data,
    output wire         rd_valid
);
  reg [AW:0] wr_bin, wr_gray, rd_bin, rd_gray;
  (* async_reg = "true" *) reg [AW:0] rd_gray_w1, rd_gray_w2, wr_gray_r1, wr_gray_r2;
  reg [AW:0] rd_bin_w, rd_bin_decoded;

  wire [AW:0] wr_next = wr_bin + 1'b1;
  wire [AW:0] rd_next = rd_bin + 1'b1;
  wire writes = wr_en && !wr_full;
  wire reads = rd_en && rd_valid;

  integer i;
  always_comb begin
    rd_bin_decoded = rd_gray_w2;
    for (i = AW - 1; i >= 0; i = i - 1) rd_bin_decoded[i] = rd_bin_decoded[i+1] ^ rd_gray_w2[i];
  end

  assign wr_level = wr_bin - rd_bin_w;
  assign wr_full = wr_level[AW];
  assign rd_valid = rd_gray != wr_gray_r2;
  lutram_1r1w #(.W(W), .AW(AW)) store (
      .wr_clk(wr_clk), .wr_en(writes), .wr_addr(wr_bin[AW-1:0]), .wr_data(wr_data), .rd_addr(rd_bin[AW-1:0]),
      .rd_data(rd_data)
  );

  always_ff @(posedge wr_clk or posedge wr_rst)
    if (wr_rst) begin
      wr_bin <= 0;
      wr_gray <= 0;
      rd_gray_w1 <= 0;
      rd_gray_w2 <= 0;
      rd_bin_w <= 0;
    end else begin
      rd_gray_w1 <= rd_gray;
      rd_gray_w2 <= rd_gray_w1;
      rd_bin_w <= rd_bin_decoded;
      if (writes) begin
        wr_bin <= wr_next;
        wr_gray <= wr_next ^ (wr_next >> 1);
      end
    end

  always_ff @(posedge rd_clk or posedge rd_rst)
    if (rd_rst) begin
      rd_bin <= 0;
      rd_gray <= 0;
      wr_gray_r1 <= 0;
      wr_gray_r2 <= 0;
    end else begin
      wr_gray_r1 <= wr_gray;
      wr_gray_r2 <= wr_gray_r1;
      if (reads) begin
        rd_bin <= rd_next;
        rd_gray <= rd_next ^ (rd_next >> 1);
      end
    end

`ifdef ASSERTIONS
  reg [AW:0] wr_gray_before, rd_gray_before;
  reg wr_known = 1'b0, rd_known = 1'b0;
  wire [AW:0] wr_change = wr_gray ^ wr_gray_before;
  wire [AW:0] rd_change = rd_gray ^ rd_gray_before;
  always @(posedge wr_clk) begin
    wr_gray_before <= wr_gray;
    wr_known <= !wr_rst;
    if (!wr_rst && wr_known) assert ((wr_change & (wr_change - 1'b1)) == 0);
  end
  always @(posedge rd_clk) begin
    rd_gray_before <= rd_gray;
    rd_known <= !rd_rst;
    if (!rd_rst && rd_known) assert ((rd_change & (rd_change - 1'b1)) == 0);
  end
`endif
endmodule

`default_nettype wire

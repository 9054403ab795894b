// SPDX-License-Identifier: MIT OR Apache-2.0
// Both clocks are free: any sequence of edges, and resets of both sides at any time, each released by its own clock.
// Words come out in the order they went in, none is lost or made up, and the writer's level never tells too little;
// and what is stored is seen, and what is taken gives room, within four edges of who waits for it. (That one bit of a
// pointer changes at a time is asserted in the FIFO.)
module fv_async_fifo (
    input wire wr_clk,
    input wire rd_clk,
    input wire wr_wish,
    input wire wr_data,
    input wire rd_wish,
    input wire resets
);
  (* gclk *) wire tick;
  reg [1:0] begun = 0;
  always @(posedge tick) if (begun != 2) begun <= begun + 1'b1;
  wire arst = resets || begun != 2;
  wire wr_rst, rd_rst;
  reset_sync wr_reset (.clk(wr_clk), .arst(arst), .rst(wr_rst));
  reset_sync rd_reset (.clk(rd_clk), .arst(arst), .rst(rd_rst));
  wire wr_full, rd_valid;
  wire [2:0] wr_level;
  wire rd_data;
  wire wr_en = wr_wish && !wr_rst;
  wire rd_en = rd_wish && !rd_rst;
  wire writes = wr_en && !wr_full;
  wire reads = rd_en && rd_valid;
  async_fifo #(.W(1), .AW(2)) dut (
      .wr_clk(wr_clk), .wr_rst(wr_rst), .wr_en(wr_en), .wr_data(wr_data), .wr_full(wr_full), .wr_level(wr_level),
      .rd_clk(rd_clk), .rd_rst(rd_rst), .rd_en(rd_en), .rd_data(rd_data), .rd_valid(rd_valid)
  );
  (* anyconst *) reg [3:0] chosen;
  reg [3:0] written, taken;
  reg value, held;
  always @(posedge wr_clk or posedge wr_rst)
    if (wr_rst) begin
      written <= 0;
      held <= 1'b0;
    end else begin
      if (writes) begin
        written <= written + 1'b1;
        if (written == chosen) begin
          value <= wr_data;
          held <= 1'b1;
        end
      end
    end
  always @(posedge rd_clk or posedge rd_rst)
    if (rd_rst) begin
      taken <= 0;
    end else begin
      if (reads) taken <= taken + 1'b1;
    end
  // What the other side saw when this one last moved.
  reg [3:0] written_then, taken_then, written_before, taken_before, taken_first;
  reg [2:0] rd_seen, wr_seen;   // edges since the counts are the same
  always @(posedge rd_clk or posedge rd_rst)
    if (rd_rst) begin
      rd_seen <= 0;
      written_then <= 0;
      written_before <= 0;
    end
    else begin
      written_then <= written;
      written_before <= written_then;
      rd_seen <= (written_then == written && !reads) ? ((rd_seen == 7) ? 3'd7 : rd_seen + 1'b1) : 3'd0;
    end
  always @(posedge wr_clk or posedge wr_rst)
    if (wr_rst) begin
      wr_seen <= 0;
      taken_then <= 0;
      taken_before <= 0;
      taken_first <= 0;
    end
    else begin
      taken_then <= taken;
      taken_before <= taken_then;
      taken_first <= taken_before;
      wr_seen <= (taken_then == taken && !writes) ? ((wr_seen == 7) ? 3'd7 : wr_seen + 1'b1) : 3'd0;
    end
  wire [3:0] stored = written - taken;
  always @(posedge tick)
    if (begun == 2 && !wr_rst && !rd_rst) begin
      assert (stored <= 4'd4);
      assert (wr_level >= stored);
      assert (!rd_valid || stored != 0);
      if (held && rd_valid && taken == chosen && stored != 0) assert (rd_data == value);
      // Nothing is known of the other side before its pointer has settled; the writer decodes it as well.
      assert (!rd_valid || written_before != taken);
      assert (wr_level >= written - taken_first);
      if (rd_seen >= 4 && written_then == written) assert (rd_valid == (stored != 0));
      if (wr_seen >= 5 && taken_then == taken) assert (wr_level == stored[2:0] && wr_full == (stored == 4));
    end
endmodule

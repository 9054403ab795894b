// SPDX-License-Identifier: MIT OR Apache-2.0
// Small first-word-fall-through FIFO on one clock. The reader sees the oldest word on rd_data whenever rd_valid. A
// write to the full FIFO and a read from the empty one do nothing.
`default_nettype none

module sync_fifo #(
    parameter W = 64,
    parameter AW = 4   // log2 of the depth
) (
    input  wire         clk,
    input  wire         rst,
    input  wire         wr_en,
    input  wire [W-1:0] wr_data,
    output wire         full,
    input  wire         rd_en,
    output wire [W-1:0] rd_data,
    output wire         rd_valid,
    output wire [AW:0]  level
);
  reg [AW:0] wr_ptr, rd_ptr;
  wire writes = wr_en && !full;
  wire reads = rd_en && rd_valid;
  assign level = wr_ptr - rd_ptr;
  assign full = level[AW];
  assign rd_valid = wr_ptr != rd_ptr;
  lutram_1r1w #(.W(W), .AW(AW)) store (
      .wr_clk(clk), .wr_en(writes), .wr_addr(wr_ptr[AW-1:0]), .wr_data(wr_data), .rd_addr(rd_ptr[AW-1:0]),
      .rd_data(rd_data)
  );

  always_ff @(posedge clk)
    if (rst) begin
      wr_ptr <= 0;
      rd_ptr <= 0;
    end else begin
      if (writes) wr_ptr <= wr_ptr + 1'b1;
      if (reads) rd_ptr <= rd_ptr + 1'b1;
    end

`ifdef ASSERTIONS
  always @(posedge clk)
    if (!rst) begin
      assert (!(wr_en && full));
      assert (!(rd_en && !rd_valid));
    end
`endif
endmodule

`default_nettype wire

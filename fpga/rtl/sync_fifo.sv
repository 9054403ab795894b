// Small first-word-fall-through FIFO on one clock. The reader sees the oldest word on rd_data whenever rd_valid.
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
  assign level = wr_ptr - rd_ptr;
  assign full = level[AW];
  assign rd_valid = wr_ptr != rd_ptr;
  lutram_1r1w #(.W(W), .AW(AW)) store (
      .wr_clk(clk), .wr_en(wr_en), .wr_addr(wr_ptr[AW-1:0]), .wr_data(wr_data), .rd_addr(rd_ptr[AW-1:0]),
      .rd_data(rd_data)
  );

  always @(posedge clk) begin
    if (rst) begin
      wr_ptr <= 0;
      rd_ptr <= 0;
    end else begin
      if (wr_en) wr_ptr <= wr_ptr + 1'b1;
      if (rd_en) rd_ptr <= rd_ptr + 1'b1;
    end
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

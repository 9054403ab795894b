// Both clocks are free: any sequence of edges. Words come out in the order they went in, none is lost or made up, and
// the writer's level never tells too little. (That one bit of a pointer changes at a time is asserted in the FIFO.)
module fv_async_fifo (
    input wire wr_clk,
    input wire rd_clk,
    input wire wr_wish,
    input wire [1:0] wr_data,
    input wire rd_wish
);
  (* gclk *) wire tick;
  reg wr_rst = 1'b1, rd_rst = 1'b1;
  reg [2:0] begun = 0;
  wire wr_full, rd_valid;
  wire [2:0] wr_level;
  wire [1:0] rd_data;
  wire wr_en = wr_wish && !wr_full && !wr_rst;
  wire rd_en = rd_wish && rd_valid && !rd_rst;
  async_fifo #(.W(2), .AW(2)) dut (
      .wr_clk(wr_clk), .wr_rst(wr_rst), .wr_en(wr_en), .wr_data(wr_data), .wr_full(wr_full), .wr_level(wr_level),
      .rd_clk(rd_clk), .rd_rst(rd_rst), .rd_en(rd_en), .rd_data(rd_data), .rd_valid(rd_valid)
  );
  // Reset for one edge of each clock; then anything.
  always @(posedge tick) begin
    if (begun < 4) begin
      begun <= begun + 1'b1;
      assume (wr_clk == begun[0] && rd_clk == begun[0]);
    end
    if (begun == 3) begin
      wr_rst <= 1'b0;
      rd_rst <= 1'b0;
    end
  end
  (* anyconst *) reg [2:0] chosen;
  reg [2:0] written = 0, taken = 0;
  reg [1:0] value;
  reg held = 1'b0;
  always @(posedge wr_clk)
    if (wr_en) begin
      written <= written + 1'b1;
      if (written == chosen) begin
        value <= wr_data;
        held <= 1'b1;
      end
    end
  always @(posedge rd_clk) if (rd_en) taken <= taken + 1'b1;
  wire [2:0] stored = written - taken;
  always @(posedge tick)
    if (begun == 4) begin
      assert (stored <= 3'd4);
      assert (wr_level >= stored);
      assert (!rd_valid || stored != 0);
      if (held && rd_valid && taken == chosen && stored != 0) assert (rd_data == value);
    end
endmodule

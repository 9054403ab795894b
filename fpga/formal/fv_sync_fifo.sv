// SPDX-License-Identifier: MIT OR Apache-2.0
// Two chosen words come out in the order they went in, and the level is right.
module fv_sync_fifo (
    input wire clk,
    input wire wr_en,
    input wire [3:0] wr_data,
    input wire rd_en
);
  reg rst = 1'b1;
  always @(posedge clk) rst <= 1'b0;
  wire full, rd_valid;
  wire [3:0] rd_data;
  wire [2:0] level;
  sync_fifo #(.W(4), .AW(2)) dut (
      .clk(clk), .rst(rst), .wr_en(wr_en), .wr_data(wr_data), .full(full), .rd_en(rd_en), .rd_data(rd_data),
      .rd_valid(rd_valid), .level(level)
  );
  // The word written as number `chosen` (modulo 8) is the one read as that number.
  (* anyconst *) reg [2:0] chosen;
  reg [2:0] written = 0, taken = 0;
  reg [3:0] value;
  reg held = 1'b0;
  always @(posedge clk) begin
    assume (!rst || (!wr_en && !rd_en));
    assume (!(wr_en && full));
    assume (!(rd_en && !rd_valid));
    if (!rst) begin
      written <= written + {2'd0, wr_en};
      taken <= taken + {2'd0, rd_en};
      if (wr_en && written == chosen) begin
        value <= wr_data;
        held <= 1'b1;
      end
      if (rd_en && taken == chosen) held <= 1'b0;
      assert (level <= 4);
      assert (level == written - taken);
      if (held && taken == chosen) assert (rd_data == value);
    end
  end
endmodule

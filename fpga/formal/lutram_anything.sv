// SPDX-License-Identifier: MIT OR Apache-2.0
// A small memory that holds anything, which nobody changes: what is proved of a look-up with it holds for every table.
module lutram_1r1w #(
    parameter W = 64,
    parameter AW = 4
) (
    input  wire          wr_clk,
    input  wire          wr_en,
    input  wire [AW-1:0] wr_addr,
    input  wire [W-1:0]  wr_data,
    input  wire [AW-1:0] rd_addr,
    output wire [W-1:0]  rd_data
);
  (* anyconst *) reg [W*(1<<AW)-1:0] content;
  assign rd_data = content[W*rd_addr+:W];
endmodule

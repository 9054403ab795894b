// SPDX-License-Identifier: MIT OR Apache-2.0
// A small memory of which one word is kept, as ram_one_word.sv.
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
  (* anyconst *) reg [AW-1:0] chosen;
  (* anyseq *) reg [W-1:0] anything;
  reg [W-1:0] kept;
  assign rd_data = (rd_addr == chosen) ? kept : anything;
  always @(posedge wr_clk) if (wr_en && wr_addr == chosen) kept <= wr_data;
endmodule

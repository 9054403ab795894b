// SPDX-License-Identifier: MIT OR Apache-2.0
// A memory of which one word is kept, at an arbitrary address; every other word reads as anything. What is proved of
// a design with it, wherever the address is `chosen`, holds with any memory, and costs no more for a large one.
module ram_1r1w #(
    parameter W = 64,
    parameter DEPTH = 2048,
    parameter AW = $clog2(DEPTH),
    parameter ZERO = 0
) (
    input  wire          clk,
    input  wire          wr_en,
    input  wire [AW-1:0] wr_addr,
    input  wire [W-1:0]  wr_data,
    input  wire [AW-1:0] rd_addr,
    output reg  [W-1:0]  rd_data
);
  (* anyconst *) reg [AW-1:0] chosen;
  (* anyseq *) reg [W-1:0] anything;
  reg [W-1:0] kept;
  generate if (ZERO != 0) initial kept = 0; endgenerate
  reg known = 1'b0;  // rd_data is the word kept
  always @(posedge clk) begin
    if (wr_en && wr_addr == chosen) kept <= wr_data;
    known <= rd_addr == chosen;
    rd_data <= (rd_addr == chosen) ? kept : anything;
  end
endmodule

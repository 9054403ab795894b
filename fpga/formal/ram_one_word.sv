// SPDX-License-Identifier: MIT OR Apache-2.0
// A memory of which one word is kept, at an arbitrary address; every other word reads as anything. What is proved of
// a design with it, wherever the address is `chosen`, holds with any memory, and costs no more for a large one. A memory
// that begins with zeros begins with zero or a little less than 2^32 here: as if much had been counted.
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
  (* anyconst *) reg much;
  wire [W-1:0] begins = much ? 64'hffff_fffe : 64'd0;
  reg [W-1:0] kept;
  reg written = 1'b0;
  wire [W-1:0] now = (ZERO == 0 || written) ? kept : begins;
  reg known = 1'b0;  // rd_data is the word kept
  always @(posedge clk) begin
    if (wr_en && wr_addr == chosen) begin
      kept <= wr_data;
      written <= 1'b1;
    end
    known <= rd_addr == chosen;
    rd_data <= (rd_addr == chosen) ? now : anything;
  end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory with one write and one read port on one clock; read data a cycle after the address. It reads in every cycle:
// an enable would have to reach every block of a large memory in time. When LE_REPORT is defined the memory is a black
// box, so that logic elements are counted without it.
`default_nettype none

`ifdef LE_REPORT
(* blackbox *)
`endif
module ram_1r1w #(
    parameter W = 64,         // bits of a word
    parameter DEPTH = 2048,   // words
    parameter AW = $clog2(DEPTH),
    parameter ZERO = 0        // 1: begins with zeros, otherwise with anything
) (
    input  wire          clk,
    input  wire          wr_en,
    input  wire [AW-1:0] wr_addr,
    input  wire [W-1:0]  wr_data,
    input  wire [AW-1:0] rd_addr,
    output reg  [W-1:0]  rd_data
);
`ifndef LE_REPORT
  reg [W-1:0] mem[0:DEPTH-1];
  generate
    if (ZERO != 0) begin : zero
      integer i;
      initial for (i = 0; i < DEPTH; i = i + 1) mem[i] = 0;
    end
  endgenerate
  always_ff @(posedge clk) begin
    if (wr_en) mem[wr_addr] <= wr_data;
    rd_data <= mem[rd_addr];
  end
`endif
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// Small memory that is read in the same cycle: LUT memory on an FPGA that has it, otherwise an embedded block with
// look-ahead. A black box when LE_REPORT is defined; its bits are reported apart.
`default_nettype none

`ifdef LE_REPORT
(* blackbox *)
`endif
module lutram_1r1w #(
    parameter W = 64,
    parameter AW = 4   // log2 of the words
) (
    input  wire          wr_clk,
    input  wire          wr_en,
    input  wire [AW-1:0] wr_addr,
    input  wire [W-1:0]  wr_data,
    input  wire [AW-1:0] rd_addr,
    output wire [W-1:0]  rd_data
);
`ifndef LE_REPORT
  reg [W-1:0] mem[0:(1 << AW)-1];
  assign rd_data = mem[rd_addr];
  always_ff @(posedge wr_clk) if (wr_en) mem[wr_addr] <= wr_data;
`endif
endmodule

`default_nettype wire

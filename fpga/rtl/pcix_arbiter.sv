// SPDX-License-Identifier: MIT OR Apache-2.0
// The chipset's arbiter: when the bus has been idle for 1 + extra_cycles cycles, grants it round robin. An agent that does
// not begin within sixteen cycles loses the grant: it may be gone.
`default_nettype none

module pcix_arbiter #(
    parameter AGENTS = 5
) (
    input  wire              clk,
    input  wire              rst,
    input  wire [4:0]        extra_cycles,  // overhead on top of the protocol's own five cycles a sequence
    input  wire [AGENTS-1:0] req,
    input  wire              frame,
    output reg  [AGENTS-1:0] gnt
);
  reg [4:0] idle;
  reg [3:0] patience;
  wire [AGENTS-1:0] grant;
  wire [$clog2(AGENTS)-1:0] index;
  wire any;
  wire take = any && gnt == 0 && !frame && idle >= extra_cycles;
  rr_arbiter #(.N(AGENTS)) turn (
      .clk(clk), .rst(rst), .req(req), .take(take), .grant(grant), .index(index), .any(any)
  );
  always_ff @(posedge clk) begin
    if (frame) begin
      idle <= 0;
      gnt <= 0;
    end else begin
      if (idle != 5'd31) idle <= idle + 1'b1;
      patience <= patience - 1'b1;
      if (take) begin
        gnt <= grant;
        patience <= 4'd15;
      end else if (patience == 0) gnt <= 0;
    end
    if (rst) begin
      gnt <= 0;
      idle <= 0;
      patience <= 0;
    end
  end
  wire unused = |index;
endmodule

`default_nettype wire

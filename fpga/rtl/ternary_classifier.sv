// One 80-bit ternary rule for each destination: ToS, source, destination, protocol. All are compared at once; the
// caller picks the destination's bit. Results follow the key by a cycle.
`default_nettype none

module ternary_classifier #(
    parameter RULES = 4
) (
    input  wire                clk,
    input  wire [79:0]         key,
    input  wire [80*RULES-1:0] value,
    input  wire [80*RULES-1:0] mask,
    input  wire [RULES-1:0]    enable,
    output reg  [RULES-1:0]    high
);
  integer i;
  always @(posedge clk)
    for (i = 0; i < RULES; i = i + 1) high[i] <= enable[i] && ((key ^ value[80*i+:80]) & mask[80*i+:80]) == 0;
endmodule

`default_nettype wire

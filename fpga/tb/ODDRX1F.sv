// SPDX-License-Identifier: MIT OR Apache-2.0
// For simulation: the ECP5's output register for two bits a clock.
`default_nettype none

module ODDRX1F (
    input  wire D0,     // leaves while the clock is high
    input  wire D1,
    input  wire SCLK,
    input  wire RST,
    output wire Q
);
  reg high, low;
  always @(posedge SCLK or posedge RST)
    if (RST) {low, high} <= 2'b00;
    else {low, high} <= {D1, D0};
  assign Q = SCLK ? high : low;
endmodule

`default_nettype wire

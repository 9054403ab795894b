// SPDX-License-Identifier: MIT OR Apache-2.0
// For simulation: the ECP5's input register for two bits a clock. What does not stand still for a nanosecond before
// and after the clock's edge, which RGMII promises its receivers (version 2.0: TsetupR, TholdR), is taken as chance will.
`default_nettype none

module IDDRX1F (
    input  wire D,
    input  wire SCLK,
    input  wire RST,
    output reg  Q0,   // at the rising edge
    output reg  Q1    // at the falling edge after it
);
  localparam APERTURE = 40;   // steps of 25 ps
  reg [2*APERTURE-1:0] history;
  reg [APERTURE:0] clocks;
  reg at_rise, at_fall;
  wire steady = history == 0 || &history;
  reg chance;
  wire taken = steady ? history[APERTURE] : chance;
  always @(rgmii_line.step) begin
    history <= {history[2*APERTURE-2:0], D};
    clocks <= {clocks[APERTURE-1:0], SCLK};
    chance <= $urandom_range(1) == 1;
    if (clocks[APERTURE:APERTURE-1] == 2'b01) at_rise <= taken;
    if (clocks[APERTURE:APERTURE-1] == 2'b10) at_fall <= taken;
  end
  always @(posedge SCLK or posedge RST)
    if (RST) {Q1, Q0} <= 2'b00;
    else {Q1, Q0} <= {at_fall, at_rise};
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// A bus that is idle or not at will: between two ticks there are as many idle cycles as patience
// asks for and one, never fewer or more.
module fv_tick_timer (
    input wire clk,
    input wire bus_idle
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg [15:0] patience;
  wire tick;
  tick_timer dut (.clk(clk), .rst(rst), .bus_idle(bus_idle), .patience(patience), .tick(tick));
  (* hierconn *) wire [15:0] \dut.idle ;
  wire [15:0] counted = \dut.idle ;
  reg [16:0] idle;   // since the last tick was due
  always @(posedge clk)
    if (rst) idle <= 0;
    else begin
      idle <= ((idle > {1'b0, patience}) ? 17'd0 : idle) + {16'd0, bus_idle};
      assert (tick == (idle > {1'b0, patience}));
      // For the induction.
      assert ({1'b0, counted} == (tick ? 17'd0 : idle));
    end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// Time for those who wait: a tick is so many cycles in which the bus is idle, so that waiting for a peer that waits for
// the bus is not counted.
`default_nettype none

module tick_timer (
    input  wire        clk,
    input  wire        rst,
    input  wire        bus_idle,
    input  wire [15:0] patience,
    output reg         tick
);
  reg [15:0] idle;
  always_ff @(posedge clk) begin
    tick <= bus_idle && idle >= patience;
    if (bus_idle) idle <= (idle >= patience) ? 16'd0 : idle + 1'b1;
    if (rst) begin
      idle <= 0;
      tick <= 1'b0;
    end
  end
endmodule

`default_nettype wire

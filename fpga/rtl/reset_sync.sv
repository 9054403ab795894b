// SPDX-License-Identifier: MIT OR Apache-2.0
// A reset that may come at any time, also while the clock stands: it is seen at once, and released by the clock, two
// edges after the last cause.
`default_nettype none

module reset_sync (
    input  wire clk,
    input  wire arst,
    output wire rst
);
  (* async_reg = "true" *) reg [1:0] stage;
  assign rst = stage[1];
  always_ff @(posedge clk or posedge arst)
    if (arst) stage <= 2'b11;
    else stage <= {stage[0], 1'b0};
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// A pulse of one clock as a pulse of another. Pulses are at least four cycles of the slower clock apart.
`default_nettype none

module toggle_sync (
    input  wire from_clk,
    input  wire from_rst,
    input  wire pulse,
    input  wire to_clk,
    input  wire to_rst,
    output wire event_o
);
  reg toggle;
  (* async_reg = "true" *) reg [2:0] seen;
  assign event_o = seen[2] ^ seen[1];
  always_ff @(posedge from_clk or posedge from_rst)
    if (from_rst) toggle <= 1'b0;
    else toggle <= toggle ^ pulse;
  always_ff @(posedge to_clk or posedge to_rst)
    if (to_rst) seen <= 3'd0;
    else seen <= {seen[1:0], toggle};
endmodule

`default_nettype wire

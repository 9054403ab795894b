// SPDX-License-Identifier: MIT OR Apache-2.0
// tkeep of an AXI4-Stream word, bytes from the lowest on, as their number less one.
`default_nettype none

module keep_count (
    input  wire [7:0] tkeep,
    output wire [2:0] last
);
  assign last[2] = tkeep[4];
  assign last[1] = tkeep[4] ? tkeep[6] : tkeep[2];
  assign last[0] = tkeep[6] ? tkeep[7] : tkeep[4] ? tkeep[5] : tkeep[2] ? tkeep[3] : tkeep[1];
  // Bit 0 is set in every word.
  wire unused = tkeep[0];
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// One byte of the Ethernet CRC-32 (IEEE 802.3 clause 3.2.9), least significant bit first.
`default_nettype none

module crc32_byte (
    input  wire [31:0] crc,
    input  wire [7:0]  data,
    output reg  [31:0] next
);
  integer i;
  always_comb begin
    next = crc ^ {24'd0, data};
    for (i = 0; i < 8; i = i + 1) next = next[0] ? ((next >> 1) ^ 32'hedb88320) : (next >> 1);
  end
endmodule

`default_nettype wire

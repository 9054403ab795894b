// SPDX-License-Identifier: MIT OR Apache-2.0
// The grant of a response: strict priority. The high class gets what it asks for and there is room for; the low
// class what is left. All in words.
`default_nettype none

module grant_split (
    input  wire [11:0] req_high,
    input  wire [11:0] req_low,
    input  wire [11:0] free,
    output wire [11:0] grant_high,
    output wire [11:0] grant_low
);
  wire [11:0] left = free - grant_high;
  assign grant_high = (req_high < free) ? req_high : free;
  assign grant_low = (req_low < left) ? req_low : left;
endmodule

`default_nettype wire

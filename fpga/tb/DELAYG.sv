// SPDX-License-Identifier: MIT OR Apache-2.0
// For simulation: the ECP5's delay of a pad, which is DEL_VALUE steps of 25 ps.
`default_nettype none

module DELAYG #(
    parameter DEL_MODE = "USER_DEFINED",
    parameter DEL_VALUE = 0
) (
    input  wire A,
    output wire Z
);
  generate
    if (DEL_MODE != "USER_DEFINED") $error("only delays that are told are simulated");
    if (DEL_VALUE > 127) $error("DEL_VALUE is 0 to 127");
    if (DEL_VALUE == 0) begin : none
      assign Z = A;
    end else begin : some
      reg [DEL_VALUE-1:0] line;
      always @(rgmii_line.step) line <= (line << 1) | {{(DEL_VALUE - 1){1'b0}}, A};
      assign Z = line[DEL_VALUE-1];
    end
  endgenerate
endmodule

`default_nettype wire

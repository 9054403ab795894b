// SPDX-License-Identifier: MIT OR Apache-2.0
// Lets frames of a stream pass, or none; what it begins it ends, whatever becomes of `enable` meanwhile.
`default_nettype none

module frame_gate (
    input  wire clk,
    input  wire rst,
    input  wire enable,
    input  wire tvalid,
    input  wire tlast,
    output wire pass,      // this word does
    output wire refused    // pulse: a frame did not
);
  reg in_frame, open;
  assign pass = in_frame ? open : enable;
  assign refused = tvalid && tlast && !pass;
  always_ff @(posedge clk) begin
    if (tvalid) begin
      in_frame <= !tlast;
      if (!in_frame) open <= enable;
    end
    if (rst) begin
      in_frame <= 1'b0;
      open <= 1'b0;
    end
  end
endmodule

`default_nettype wire

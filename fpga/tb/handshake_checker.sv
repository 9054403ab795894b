// SPDX-License-Identifier: MIT OR Apache-2.0
// What is offered is held: valid stays, and the payload does not change, until it is taken. Where nothing is ever
// refused, `ready` is one.
`default_nettype none

module handshake_checker #(
    parameter W = 64
) (
    input wire         clk,
    input wire         rst,
    input wire         valid,
    input wire         ready,
    input wire [W-1:0] payload
);
`ifdef ASSERTIONS
  reg refused = 1'b0;
  reg [W-1:0] offered;
  always @(posedge clk) begin
    refused <= valid && !ready && !rst;
    offered <= payload;
    if (refused && !rst) begin
      assert (valid);
      assert (payload == offered);
    end
  end
`endif
endmodule

`default_nettype wire

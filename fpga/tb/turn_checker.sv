// SPDX-License-Identifier: MIT OR Apache-2.0
// Turns: nobody has a second one while somebody waits who did so at the first.
`default_nettype none

module turn_checker #(
    parameter N = 4
) (
    input wire         clk,
    input wire         rst,
    input wire [N-1:0] req,
    input wire         take,
    input wire [N-1:0] grant
);
`ifdef ASSERTIONS
  reg [N-1:0] waiting[0:N-1];   // since the last turn of each
  integer i;
  always @(posedge clk)
    for (i = 0; i < N; i = i + 1)
      if (rst) waiting[i] <= 0;
      else begin
        waiting[i] <= waiting[i] & req;
        if (take) begin
          if (grant[i]) begin
            assert ((waiting[i] & req & ~grant) == 0);
            waiting[i] <= req & ~grant;
          end else waiting[i] <= waiting[i] & req & ~grant;
        end
      end
`endif
endmodule

`default_nettype wire

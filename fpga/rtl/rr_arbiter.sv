// SPDX-License-Identifier: MIT OR Apache-2.0
// Round-robin arbiter: of the requests, the first one after the last that was taken. A request that persists is
// passed over at most N-1 times.
`default_nettype none

module rr_arbiter #(
    parameter N = 4,                            // requesters
    parameter IW = (N > 1) ? $clog2(N) : 1      // width of an index
) (
    input  wire          clk,
    input  wire          rst,
    input  wire [N-1:0]  req,
    input  wire          take,   // the grant is used: the pointer moves on
    output wire [N-1:0]  grant,  // one-hot, combinational
    output reg  [IW-1:0] index,
    output wire          any
);
  reg [N-1:0] above;  // ones above the last requester that was taken
  wire [N-1:0] next = req & above;
  wire [N-1:0] pick = (next != 0) ? next : req;
  assign grant = pick & (~pick + 1'b1);
  assign any = req != 0;

  integer i;
  always_comb begin
    index = 0;
    for (i = 0; i < N; i = i + 1) if (grant[i]) index = index | i[IW-1:0];
  end

  always_ff @(posedge clk) begin
    if (rst) above <= {N{1'b1}};
    else if (take && any) above <= ~(grant | (grant - 1'b1));
  end

`ifdef ASSERTIONS
  wire [N-1:0] below = ~above;  // ones up to some requester
  always_ff @(posedge clk)
    if (!rst) begin
      assert ((below & (below + 1'b1)) == 0);
      assert ((grant & (grant - 1'b1)) == 0);
      assert ((grant & ~req) == 0);
      assert (any == (grant != 0));
    end
`endif
endmodule

`default_nettype wire

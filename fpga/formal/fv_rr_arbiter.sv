// SPDX-License-Identifier: MIT OR Apache-2.0
// A request that persists is passed over at most N-1 times, whatever the others do. A grant is taken in every cycle:
// one in which nothing is taken changes no state.
module fv_rr_arbiter (
    input wire clk,
    input wire [2:0] req
);
  wire take = 1'b1;
  reg rst = 1'b1;
  always @(posedge clk) rst <= 1'b0;
  wire [2:0] grant;
  wire [1:0] index;
  wire any;
  rr_arbiter #(.N(3)) dut (
      .clk(clk), .rst(rst), .req(req), .take(take), .grant(grant), .index(index), .any(any)
  );
  (* anyconst *) reg [1:0] who;
  reg [2:0] passed = 0;
  reg waiting = 1'b0;
  always @(posedge clk) begin
    assume (who < 3);
    assume (!waiting || req[who]);
    waiting <= !rst && req[who] && !(take && grant[who]);
    if (rst || !req[who] || (take && grant[who])) passed <= 0;
    else if (take && any) passed <= passed + 1'b1;
    if (!rst) begin
      assert (passed <= 2);
      assert (any == (req != 0));
      if (any) assert (grant == (3'd1 << index));
    end
  end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// Strict priority: no more than there is room for, no more than was asked, nothing for the low class while the high
// class is not satisfied, and nothing withheld.
module fv_grant_split (
    input wire clk,
    input wire [11:0] req_high,
    input wire [11:0] req_low,
    input wire [11:0] free
);
  wire [11:0] grant_high, grant_low;
  grant_split dut (
      .req_high(req_high), .req_low(req_low), .free(free), .grant_high(grant_high), .grant_low(grant_low)
  );
  wire [12:0] sum = {1'b0, grant_high} + {1'b0, grant_low};
  wire [12:0] wish = {1'b0, req_high} + {1'b0, req_low};
  always @(posedge clk) begin
    assert (sum <= {1'b0, free});
    assert (grant_high <= req_high && grant_low <= req_low);
    assert (grant_low == 0 || grant_high == req_high);
    assert (sum == {1'b0, free} || sum == wish);
  end
endmodule

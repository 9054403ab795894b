// SPDX-License-Identifier: MIT OR Apache-2.0
// Both clocks are free, resets of the receive side come at will: the reader sees frames word by word from their first to
// their last one, as they were written, or cut off; never the middle of one, never one twice, nor one after a later one.
module fv_rx_crossing (
    input wire rx_clk,
    input wire clk,
    input wire resets,
    input wire offers,
    input wire ends,
    input wire bad
);
  (* gclk *) wire instant;
  reg [1:0] begun = 0;
  always @(posedge instant) if (begun != 2) begun <= begun + 1'b1;
  wire arst = begun != 2;
  wire rx_arst = resets || arst;
  wire rx_rst, rst;
  reset_sync rx_reset (.clk(rx_clk), .arst(rx_arst), .rst(rx_rst));
  reset_sync reset (.clk(clk), .arst(arst), .rst(rst));
  // A word says of which frame it is, its place, and what comes with it. The sender's reset does not begin its count anew.
  reg [4:0] frame = 0;
  reg [1:0] place;
  wire valid = offers && !rx_rst;
  wire last = ends || place == 3;
  wire [63:0] word = {55'd0, bad && last, last, frame, place};
  wire [63:0] out;
  wire [7:0] keep;
  wire out_valid, out_last;
  wire [1:0] user;
  always @(posedge rx_clk or posedge rx_rst)
    if (rx_rst) place <= 0;
    else if (valid) place <= last ? 2'd0 : place + 1'b1;
  always @(posedge rx_clk) if (place == 0 && valid) frame <= frame + 1'b1;
  reg [4:0] of;   // the frame that has begun
  always @(posedge rx_clk) if (place == 0 && valid) of <= frame;
  rx_crossing #(.AW(2)) dut (
      .rx_clk(rx_clk), .rx_arst(rx_arst), .s_axis_tdata({word[63:7], (place == 0) ? frame : of, place}),
      .s_axis_tkeep(8'hff), .s_axis_tvalid(valid), .s_axis_tlast(last), .s_axis_tuser({1'b0, bad && last}), .clk(clk),
      .rst(rst), .m_axis_tdata(out), .m_axis_tkeep(keep), .m_axis_tvalid(out_valid), .m_axis_tlast(out_last),
      .m_axis_tuser(user)
  );
  reg inside = 1'b0, any = 1'b0;
  reg [4:0] seen;
  reg [1:0] next;
  wire cut = out_last && user == 3;
  always @(posedge clk) if (!rst && begun == 2) begin
    if (out_valid) begin
      inside <= !out_last;
      if (!cut) begin
        any <= 1'b1;
        seen <= out[6:2];
        next <= out[1:0] + 1'b1;
        assert (out[1:0] == (inside ? next : 2'd0));
        assert (inside ? out[6:2] == seen : !any || (out[6:2] - seen != 0 && out[6:2] - seen < 16));
        assert (out_last == out[7] && (!out_last || user == {1'b0, out[8]}) && keep == 8'hff);
      end
    end
`ifdef REACH
    assert (!(out_valid && !cut && out_last && inside));
`endif
  end
endmodule

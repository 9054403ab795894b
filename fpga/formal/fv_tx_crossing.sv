// SPDX-License-Identifier: MIT OR Apache-2.0
// Both clocks are free, resets of the transmit side and of the card come at will, each without the other: the transmit
// side sees frames word by word from their first to their last one, as they were written, each in its turn; frames are
// missing only where a reset came, and what is offered stays until it is taken.
module fv_tx_crossing (
    input wire clk,
    input wire tx_clk,
    input wire resets,
    input wire card_resets,
    input wire offers,
    input wire ends,
    input wire takes
);
  (* gclk *) wire instant;
  reg [1:0] begun = 0;
  always @(posedge instant) if (begun != 2) begun <= begun + 1'b1;
  wire arst = card_resets || begun != 2;
  wire tx_arst = resets || arst;
  wire rst, tx_rst;
  reset_sync reset (.clk(clk), .arst(arst), .rst(rst));
  reset_sync tx_reset (.clk(tx_clk), .arst(tx_arst), .rst(tx_rst));
  // A word says of which frame it is and its place. What is offered stays; a reset of the card does not begin the count
  // of frames anew.
  reg valid, last;
  reg [4:0] frame = 0;
  reg [1:0] place;
  wire ready;
  wire next_last = ends || place == 2;
  always @(posedge clk)
    if (rst) begin
      valid <= 1'b0;
      place <= 0;
      last <= ends;
      if (valid || place != 0) frame <= frame + 1'b1;
    end else if (!valid || ready) begin
      valid <= offers;
      if (valid) begin
        place <= last ? 2'd0 : place + 1'b1;
        if (last) frame <= frame + 1'b1;
        last <= last ? ends : next_last;
      end
    end
  wire [63:0] out;
  wire [7:0] keep;
  wire out_valid, out_last;
  tx_crossing #(.AW(2)) dut (
      .clk(clk), .rst(rst), .s_axis_tdata({56'd0, last, frame, place}), .s_axis_tkeep(8'hff), .s_axis_tvalid(valid),
      .s_axis_tready(ready), .s_axis_tlast(last), .tx_clk(tx_clk), .tx_arst(tx_arst), .m_axis_tdata(out),
      .m_axis_tkeep(keep), .m_axis_tvalid(out_valid), .m_axis_tready(takes), .m_axis_tlast(out_last)
  );
  // What is in progress is forgotten with a reset, as the gearbox does. The first frame after one may be any later one.
  reg inside, gap, waits;
  reg any = 1'b0;
  reg [4:0] seen;
  reg [1:0] next;
  reg [7:0] before;
  always @(posedge tx_clk or posedge tx_rst)
    if (tx_rst) begin
      inside <= 1'b0;
      gap <= 1'b1;
      waits <= 1'b0;
    end else begin
      waits <= out_valid && !takes;
      if (out_valid && takes) begin
        inside <= !out_last;
        gap <= 1'b0;
      end
    end
  always @(posedge tx_clk) begin
    before <= out[7:0];
    if (!tx_rst && out_valid && takes) begin
      any <= 1'b1;
      seen <= out[6:2];
      next <= out[1:0] + 1'b1;
    end
  end
  wire [4:0] later = out[6:2] - seen;
  always @(posedge tx_clk)
    if (!tx_rst && begun == 2) begin
      if (waits) assert (out_valid && out[7:0] == before);
      if (out_valid) begin
        assert (out[1:0] == (inside ? next : 2'd0));
        assert (inside ? later == 0 : !any || (gap ? later != 0 && later < 16 : later == 1));
        assert (out_last == out[7] && keep == 8'hff);
      end
`ifdef REACH
      assert (!(out_valid && takes && out_last && inside && any && gap == 0 && seen != 0));
`endif
    end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// Frames of any bytes that come at will, with pauses in them too: on the line every frame has its preamble, its bytes in
// order, zeros up to sixty, and four bytes more (that these are the check sequence, simulation shows); twelve byte times are
// between two; a frame with a pause ends with an error, which is told, and nothing of its rest appears.
module fv_gmii_mac_tx (
    input wire       clk,
    input wire [7:0] tdata,
    input wire       offers,
    input wire       ends
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  wire tready, tx_en, tx_er, sent, cut;
  wire [7:0] txd;
  wire tvalid = offers && !rst;
  gmii_mac_tx dut (
      .clk(clk), .rst(rst), .s_axis_tdata(tdata), .s_axis_tvalid(tvalid), .s_axis_tlast(ends), .s_axis_tready(tready),
      .gmii_txd(txd), .gmii_tx_en(tx_en), .gmii_tx_er(tx_er), .sent(sent), .cut(cut)
  );
  reg taken = 1'b0, was_last, skips = 1'b0;   // a byte that belongs to a frame; what follows is a rest
  reg [7:0] byte_1;
  reg [6:0] at = 0;          // bytes of the frame on the line, with its preamble
  reg [3:0] gap = 12;
  reg [2:0] fcs = 0;         // check sequence bytes so far, from one on
  reg complete = 1'b0, bad = 1'b0, second = 1'b0;

  always @(posedge clk) if (!rst) begin
    taken <= tready && tvalid && !skips && !cut;
    was_last <= ends;
    byte_1 <= tdata;
    if (tready && tvalid && ends) skips <= 1'b0;
    else if (cut) skips <= 1'b1;
    assert (!tx_er || tx_en);
    assert (cut == tx_er);
    if (!tx_en) begin
      assert (!taken && (at == 0 || fcs == 4));
      at <= 0;
      fcs <= 0;
      complete <= 1'b0;
      bad <= 1'b0;
      gap <= (gap == 12) ? 4'd12 : gap + 1'b1;
    end else begin
      if (at == 0) assert (gap == 12);
      gap <= 0;
      if (at != 127) at <= at + 1'b1;
      if (at < 8) begin
        assert (txd == ((at == 7) ? 8'hd5 : 8'h55) && !tx_er && !taken);
      end else if (fcs == 0 && !complete) begin
        // A byte, a zero after the last one, or the end of a frame whose next byte did not come.
        assert (taken || tx_er);
        if (taken) assert (txd == byte_1 && !tx_er);
        if (tx_er) begin
          bad <= 1'b1;
          complete <= 1'b1;
          fcs <= 3'd0;
        end
        if (taken && was_last) complete <= 1'b1;
      end else if (!bad && fcs == 0 && at < 68) begin
        assert (txd == 8'h00 && !taken && !tx_er);
      end else begin
        assert (fcs < 4 && !taken && !tx_er);
        fcs <= fcs + 1'b1;
      end
    end
`ifdef REACH
    // A second frame begins after one that was padded.
    assert (!(tx_en && at == 0 && second));
`endif
    if (tx_en && fcs == 3 && !bad) second <= 1'b1;
  end

endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// Words of any length that come at will, a receiver that takes bytes at will: the bytes come in order, each once, and
// stay until they are taken; the last one of a frame's last word is marked. While the receiver takes every byte and the
// next word is always there, bytes follow each other without a pause.
module fv_mac_gearbox_tx (
    input wire        clk,
    input wire [63:0] tdata,
    input wire [2:0]  length,    // of the word, less one
    input wire        offers,
    input wire        ends,
    input wire        takes
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg steady;    // all words are full and there, all bytes are taken
  wire in_valid = offers || steady;
  wire [2:0] in_length = steady ? 3'd7 : length;
  wire ready, out_valid, out_last;
  wire [7:0] out;
  wire out_ready = takes || steady;
  mac_gearbox_tx dut (
      .clk(clk), .rst(rst), .s_axis_tdata(tdata), .s_axis_tkeep(8'hff >> (3'd7 - in_length)),
      .s_axis_tvalid(in_valid), .s_axis_tlast(ends), .s_axis_tready(ready), .m_axis_tdata(out),
      .m_axis_tvalid(out_valid), .m_axis_tlast(out_last), .m_axis_tready(out_ready)
  );
  // Words taken and not yet given out: at most two.
  reg [67:0] first, second;
  reg [1:0] words = 0;
  reg [2:0] at = 0;
  reg began = 1'b0;
  wire [67:0] word = {ends, in_length, tdata};
  wire gives = out_valid && out_ready;
  wire word_done = gives && at == first[66:64];
  always @(posedge clk) if (!rst) begin
    assert (!out_valid || words != 0);
    if (out_valid) begin
      assert (out == first[8*at+:8]);
      assert (out_last == (first[67] && at == first[66:64]));
    end
    if (words == 2) assert (out_valid);
    if (steady && began) assert (out_valid);
    if (out_valid) began <= 1'b1;
    if (gives) at <= word_done ? 3'd0 : at + 1'b1;
    words <= words + {1'b0, in_valid && ready} - {1'b0, word_done};
    if (word_done) first <= second;
    if (in_valid && ready) begin
      assert (words != 2);
      if (words == {1'b0, word_done}) first <= word;
      else second <= word;
    end
  end
endmodule

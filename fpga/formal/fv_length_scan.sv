// SPDX-License-Identifier: MIT OR Apache-2.0
// The scan of a queue of up to three packets of any lengths: the words of the first `count` packets with their headers,
// no more than the grant, and one packet more would not fit or is not there.
module fv_length_scan (
    input wire       clk,
    input wire       begins
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg [10:0] length_0, length_1, length_2;
  (* anyconst *) reg [1:0] packets;
  (* anyconst *) reg [11:0] grant;
  reg busy = 1'b0;
  wire start = begins && !busy && !rst;
  wire [7:0] offset, count;
  reg [10:0] asked, len_bytes;
  wire done;
  wire [11:0] words;
  length_scan dut (
      .clk(clk), .rst(rst), .start(start), .packets({6'd0, packets}), .grant_words(grant), .offset(offset),
      .len_bytes(len_bytes), .done(done), .count(count), .words(words)
  );
  function [11:0] cost(input [10:0] bytes);
    cost = {4'd0, bytes[10:3]} + {11'd0, bytes[2:0] != 0} + 12'd1;
  endfunction
  wire [12:0] one = cost(length_0);
  wire [12:0] two = one + cost(length_1);
  wire [12:0] three = two + cost(length_2);
  wire [12:0] sum = (count == 0) ? 13'd0 : (count == 1) ? one : (count == 2) ? two : three;
  wire [12:0] next = (count == 0) ? one : (count == 1) ? two : three;
  always @(posedge clk) begin
    asked <= (offset == 0) ? length_0 : (offset == 1) ? length_1 : length_2;
    len_bytes <= asked;
    if (start) busy <= 1'b1;
    if (done) busy <= 1'b0;
    if (!rst && done) begin
      assert (busy && count <= {6'd0, packets});
      assert ({1'b0, words} == sum && words <= grant);
      assert (count == {6'd0, packets} || next > {1'b0, grant});
    end
  end
endmodule

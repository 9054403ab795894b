// SPDX-License-Identifier: MIT OR Apache-2.0
// An output FIFO of four words, any packets, any of them taken back before they are whole, and a reader that takes whole
// packets. What is read is what was written, in order, without the packets that were taken back; the room is exact.
module fv_output_fifo (
    input wire clk,
    input wire write,
    input wire last,
    input wire cancel,
    input wire read
);
  localparam CAP = 4;
  reg rst = 1'b1;
  always @(posedge clk) rst <= 1'b0;

  // A word tells its packet among those that became whole, its place, and whether it is the last.
  reg [2:0] number = 0;
  reg [2:0] index = 0;
  wire [11:0] free;
  wire overflow, rd_packet;
  wire [63:0] rd_data;
  wire wr_valid = write && free != 0 && !rst;
  wire taken_back = cancel && !rst;
  wire [6:0] tag = {number, index, last};
  // The reader: while a packet is there a word at will; it looks at the word a cycle later, and is done with the last.
  reg looks = 1'b0, ends = 1'b0;
  reg [2:0] rd_number = 0;
  reg [2:0] rd_index = 0;
  // The places of the last words, for the reader.
  reg [23:0] lasts = 0;
  wire is_last = rd_index == lasts[3*rd_number+:3];
  wire rd_en = read && rd_packet && !looks && !ends && !rst;
  output_fifo #(.CAP_WORDS(CAP), .AW(2)) dut (
      .clk(clk), .rst(rst), .wr_valid(wr_valid), .wr_data({57'd0, tag}), .wr_last(last), .wr_cancel(taken_back),
      .free_words(free), .overflow(overflow), .rd_packet(rd_packet), .rd_en(rd_en), .rd_data(rd_data), .rd_done(ends)
  );
  (* hierconn *) wire \dut.ram.known ;

  reg [11:0] held = 0;    // words in it
  always @(posedge clk) if (!rst) begin
    looks <= rd_en;
    ends <= looks && is_last;
    held <= held + (wr_valid && !taken_back) - rd_en - (taken_back ? {9'd0, index} : 12'd0);
    if (taken_back) index <= 0;
    else if (wr_valid) begin
      index <= last ? 3'd0 : index + 1'b1;
      number <= number + last;
      if (last) lasts[3*number+:3] <= index;
    end
    if (looks) begin
      if (\dut.ram.known ) assert (rd_data == {57'd0, rd_number, rd_index, is_last});
      assert (rd_number != number);
      rd_index <= is_last ? 3'd0 : rd_index + 1'b1;
      rd_number <= rd_number + is_last;
    end
    assert (free + held == CAP);
    assert (!overflow);
    // Offered until the last of the whole ones is done.
    assert (rd_packet == (rd_number != number || ends));
  end
endmodule

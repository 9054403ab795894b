// SPDX-License-Identifier: MIT OR Apache-2.0
// Output FIFO: packets as header word and data words. A packet can be read when it is complete; one that will not be
// completed is taken back. Who writes has reserved the room (grant or split read); should there be none all the same,
// the packet is refused and said so.
`default_nettype none

module output_fifo #(
    parameter CAP_WORDS = 1920,   // 15,360 bytes
    parameter AW = $clog2(CAP_WORDS)
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        wr_valid,
    input  wire [63:0] wr_data,
    input  wire        wr_last,
    input  wire        wr_cancel,  // the packet in progress, with the word of this cycle, is taken back
    output reg  [11:0] free_words,
    output reg         overflow,   // pulse: a word found no room
    output wire        rd_packet,  // a whole packet is there
    input  wire        rd_en,
    output wire [63:0] rd_data,    // a cycle after rd_en
    input  wire        rd_done     // pulse: the packet has been read
);
  reg [AW-1:0] wr_ptr, begin_ptr, rd_ptr;  // begin_ptr: of the packet in progress
  reg [7:0] begun;                         // words of the packet in progress
  reg [AW:0] packets;                      // the shortest of the host's are three words
  reg refused;                             // of the packet in progress, a word
  wire full = free_words == 0;
  wire writes = wr_valid && !full && !refused && !wr_cancel;
  wire complete = writes && wr_last;
  wire [11:0] returned = (wr_cancel || (wr_valid && wr_last && !writes)) ? {4'd0, begun} : 12'd0;
  assign rd_packet = packets != 0;

  always_ff @(posedge clk) begin
    if (rd_en) rd_ptr <= rd_ptr + 1'b1;
    free_words <= free_words + {11'd0, rd_en} - {11'd0, writes} + returned;
    packets <= packets + {{AW{1'b0}}, complete} - {{AW{1'b0}}, rd_done};
    overflow <= wr_valid && full && !wr_cancel;
    if (wr_cancel || (wr_valid && wr_last)) begin
      begun <= 0;
      refused <= 1'b0;
      if (complete) begin
        wr_ptr <= wr_ptr + 1'b1;
        begin_ptr <= wr_ptr + 1'b1;
      end else wr_ptr <= begin_ptr;
    end else if (wr_valid) begin
      if (writes) begin
        wr_ptr <= wr_ptr + 1'b1;
        begun <= begun + 1'b1;
      end else refused <= 1'b1;
    end
    if (rst) begin
      wr_ptr <= 0;
      begin_ptr <= 0;
      rd_ptr <= 0;
      free_words <= CAP_WORDS[11:0];
      packets <= 0;
      begun <= 0;
      refused <= 1'b0;
      overflow <= 1'b0;
    end
  end

  ram_1r1w #(.W(64), .DEPTH(1 << AW)) ram (
      .clk(clk), .wr_en(writes), .wr_addr(wr_ptr), .wr_data(wr_data), .rd_addr(rd_ptr), .rd_data(rd_data)
  );

`ifdef ASSERTIONS
  always @(posedge clk)
    if (!rst) begin
      assert (!overflow);
      assert (free_words <= CAP_WORDS);
      assert (!(rd_done && packets == 0));
    end
`endif
endmodule

`default_nettype wire

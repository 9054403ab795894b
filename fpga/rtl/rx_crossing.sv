// SPDX-License-Identifier: MIT OR Apache-2.0
// Received words from the receive clock to the card's. Whatever happens to either side, the reader gets whole frames
// or frames that end with tuser 3, cut off: the FIFO is full because the card's clock stands, or a reset came in the
// middle. A frame whose beginning is lost is passed over to its end and told of by a word of its own.
`default_nettype none

module rx_crossing #(
    parameter AW = 4   // log2 of the words
) (
    input  wire        rx_clk,
    input  wire        rx_arst,        // of the receive side or the card, at any time
    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tvalid,
    input  wire        s_axis_tlast,
    input  wire [1:0]  s_axis_tuser,
    input  wire        clk,
    input  wire        rst,            // of the card
    output reg  [63:0] m_axis_tdata,
    output reg  [7:0]  m_axis_tkeep,
    output reg         m_axis_tvalid,
    output reg         m_axis_tlast,
    output reg  [1:0]  m_axis_tuser
);
  localparam [1:0] CUT = 2'd3;
  localparam [AW:0] FULL = (1 << AW) - 1, NEARLY_FULL = (1 << AW) - 3;
  wire wr_rst, rd_rst, clearing;
  reset_sync wr_reset (.clk(rx_clk), .arst(rx_arst), .rst(wr_rst));
  reset_sync rd_reset (.clk(clk), .arst(rx_arst), .rst(rd_rst));
  reset_sync rd_clear (.clk(clk), .arst(rx_arst), .rst(clearing));

  // Writing. One place stays for the end of the frame in progress. How full the FIFO is, is known a cycle late, in which
  // one word may have come.
  reg in_frame, stored;   // a frame is in progress; all its words so far are in the FIFO
  reg owed;             // an end is to be written for words that were lost
  reg full, nearly_full;
  wire [AW:0] level;
  wire room = !owed && !nearly_full;
  wire takes = s_axis_tvalid && (in_frame ? stored && (room || (s_axis_tlast && !full)) : room);
  wire ends = owed && !full && !takes;
  wire [2:0] last_byte;
  keep_count count (.tkeep(s_axis_tkeep), .last(last_byte));
  wire [69:0] word = ends ? {CUT, 3'd7, 1'b1, 64'd0} : {s_axis_tuser, last_byte, s_axis_tlast, s_axis_tdata};
  wire [69:0] rd_word;
  wire rd_valid, no_place;
  wire unused = no_place;
  async_fifo #(.W(70), .AW(AW)) fifo (
      .wr_clk(rx_clk), .wr_rst(wr_rst), .wr_en(takes || ends), .wr_data(word), .wr_full(no_place), .wr_level(level),
      .rd_clk(clk), .rd_rst(rd_rst), .rd_en(rd_valid), .rd_data(rd_word), .rd_valid(rd_valid)
  );
  always_ff @(posedge rx_clk or posedge wr_rst)
    if (wr_rst) begin
      in_frame <= 1'b0;
      stored <= 1'b0;
      owed <= 1'b0;
      full <= 1'b0;
      nearly_full <= 1'b0;
    end else begin
      full <= level >= FULL;
      nearly_full <= level >= NEARLY_FULL;
      if (ends) owed <= 1'b0;
      if (s_axis_tvalid) begin
        in_frame <= !s_axis_tlast;
        stored <= takes && !s_axis_tlast;
        // The beginning is in the FIFO and must get an end, or the whole frame was refused.
        if (!takes && (stored || !in_frame)) owed <= 1'b1;
      end
    end

  // Reading. Registered: the FIFO's memory is read across its width. A reset of the receive side in the middle of a
  // frame ends it here.
  reg open;
  reg [2:0] clear;
  wire cut = clear[2] && open;
  always_ff @(posedge clk) begin
    clear <= {clear[1:0], clearing};
    m_axis_tdata <= rd_word[63:0];
    m_axis_tlast <= rd_word[64] || cut;
    m_axis_tkeep <= cut ? 8'hff : 8'hff >> (3'd7 - rd_word[67:65]);
    m_axis_tuser <= cut ? CUT : rd_word[69:68];
    m_axis_tvalid <= rd_valid || cut;
    if (rd_valid) open <= !rd_word[64];
    else if (cut) open <= 1'b0;
    if (rst) begin
      clear <= 3'd0;
      open <= 1'b0;
      m_axis_tvalid <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge rx_clk) if (!wr_rst) assert (!((takes || ends) && no_place));
  always @(posedge clk) if (!rst) assert (!(cut && rd_valid));
`endif
endmodule

`default_nettype wire

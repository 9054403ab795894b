// SPDX-License-Identifier: MIT OR Apache-2.0
// Words to send from the card's clock to the transmit clock. A reset of the transmit side in the middle of a frame
// empties the FIFO; what the card still writes of that frame is thrown away, so that the transmit side begins with a
// frame's first word.
`default_nettype none

module tx_crossing #(
    parameter AW = 4   // log2 of the words
) (
    input  wire        clk,
    input  wire        rst,            // of the card
    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tvalid,
    output wire        s_axis_tready,
    input  wire        s_axis_tlast,
    input  wire        tx_clk,
    input  wire        tx_arst,        // of the transmit side or the card, at any time
    output wire [63:0] m_axis_tdata,
    output wire [7:0]  m_axis_tkeep,
    output wire        m_axis_tvalid,
    input  wire        m_axis_tready,
    output wire        m_axis_tlast
);
  wire wr_rst, rd_rst, cleared, full;
  wire [AW:0] level;
  wire [2:0] last_byte;
  wire [67:0] rd_word;
  reset_sync wr_reset (.clk(clk), .arst(tx_arst), .rst(wr_rst));
  reset_sync wr_clear (.clk(clk), .arst(tx_arst), .rst(cleared));
  reset_sync rd_reset (.clk(tx_clk), .arst(tx_arst), .rst(rd_rst));
  keep_count count (.tkeep(s_axis_tkeep), .last(last_byte));

  reg in_frame, skip;
  reg [2:0] clear;
  wire clearing = clear[2] || clear[1];
  wire discard = clearing || skip;
  assign s_axis_tready = discard || !full;
  async_fifo #(.W(68), .AW(AW)) fifo (
      .wr_clk(clk), .wr_rst(wr_rst), .wr_en(s_axis_tvalid && !discard), .wr_data({last_byte, s_axis_tlast, s_axis_tdata}),
      .wr_full(full), .wr_level(level), .rd_clk(tx_clk), .rd_rst(rd_rst), .rd_en(m_axis_tvalid && m_axis_tready),
      .rd_data(rd_word), .rd_valid(m_axis_tvalid)
  );
  assign m_axis_tdata = rd_word[63:0];
  assign m_axis_tlast = rd_word[64];
  assign m_axis_tkeep = 8'hff >> (3'd7 - rd_word[67:65]);
  wire unused = |level;

  always_ff @(posedge clk) begin
    // Not emptied with the card's reset: the transmit side's may end a cycle after it.
    clear <= {clear[1:0], cleared};
    if (s_axis_tvalid && s_axis_tready) in_frame <= !s_axis_tlast;
    // In progress when the reset is over: its beginning is gone.
    if (clearing) skip <= (s_axis_tvalid && s_axis_tready) ? !s_axis_tlast : in_frame;
    else if (s_axis_tvalid && s_axis_tready && s_axis_tlast) skip <= 1'b0;
    if (rst) begin
      in_frame <= 1'b0;
      skip <= 1'b0;
    end
  end
endmodule

`default_nettype wire

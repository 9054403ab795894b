// SPDX-License-Identifier: MIT OR Apache-2.0
// The Gigabit MAC with its clocks: GMII outside, words of the card's clock inside. Resets may come at any time, and each
// without the others.
`default_nettype none

module nic_mac (
    input  wire        gmii_rx_clk,
    input  wire        rx_arst,
    input  wire [7:0]  gmii_rxd,
    input  wire        gmii_rx_dv,
    input  wire        gmii_rx_er,
    input  wire        gmii_tx_clk,
    input  wire        tx_arst,
    output wire [7:0]  gmii_txd,
    output wire        gmii_tx_en,
    output wire        gmii_tx_er,
    input  wire        clk,
    input  wire        arst,           // of the card
    input  wire        rst,            // the same, released by clk
    // Received frames; with the last word, what is wrong (gmii_mac_rx), or 3: cut off.
    output wire [63:0] m_axis_tdata,
    output wire [7:0]  m_axis_tkeep,
    output wire        m_axis_tvalid,
    output wire        m_axis_tlast,
    output wire [1:0]  m_axis_tuser,
    // Frames to send.
    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tvalid,
    output wire        s_axis_tready,
    input  wire        s_axis_tlast,
    // Pulses: a carrier without start-of-frame delimiter, a frame too close to the one before; a frame left whole, or
    // cut off.
    output wire        no_sfd,
    output wire        crowded,
    output wire        sent,
    output wire        cut
);
  // A reset of either side reaches both.
  wire rx_either = rx_arst || arst;
  wire tx_either = tx_arst || arst;
  wire rx_rst, tx_rst, rx_rst_events, rst_rx_events, tx_rst_events, rst_tx_events;
  reset_sync rx_reset (.clk(gmii_rx_clk), .arst(rx_either), .rst(rx_rst));
  reset_sync tx_reset (.clk(gmii_tx_clk), .arst(tx_either), .rst(tx_rst));
  // Events have resets of their own, because they are asynchronous.
  reset_sync rx_events_reset (.clk(gmii_rx_clk), .arst(rx_either), .rst(rx_rst_events));
  reset_sync tx_events_reset (.clk(gmii_tx_clk), .arst(tx_either), .rst(tx_rst_events));
  reset_sync from_rx_events_reset (.clk(clk), .arst(rx_either), .rst(rst_rx_events));
  reset_sync from_tx_events_reset (.clk(clk), .arst(tx_either), .rst(rst_tx_events));

  // Receive.
  wire [7:0] rx_byte, rx_word_keep;
  wire [63:0] rx_word;
  wire [1:0] rx_byte_user, rx_word_user;
  wire rx_byte_valid, rx_byte_last, rx_word_valid, rx_word_last, rx_no_sfd, rx_crowded;
  gmii_mac_rx mac_rx (
      .clk(gmii_rx_clk), .rst(rx_rst), .gmii_rxd(gmii_rxd), .gmii_rx_dv(gmii_rx_dv), .gmii_rx_er(gmii_rx_er),
      .m_axis_tdata(rx_byte), .m_axis_tvalid(rx_byte_valid), .m_axis_tlast(rx_byte_last),
      .m_axis_tuser(rx_byte_user), .no_sfd(rx_no_sfd), .crowded(rx_crowded)
  );
  mac_gearbox_rx gearbox_rx (
      .clk(gmii_rx_clk), .rst(rx_rst), .s_axis_tdata(rx_byte), .s_axis_tvalid(rx_byte_valid),
      .s_axis_tlast(rx_byte_last), .s_axis_tuser(rx_byte_user), .m_axis_tdata(rx_word), .m_axis_tkeep(rx_word_keep),
      .m_axis_tvalid(rx_word_valid), .m_axis_tlast(rx_word_last), .m_axis_tuser(rx_word_user)
  );
  rx_crossing rx_cdc (
      .rx_clk(gmii_rx_clk), .rx_arst(rx_either), .s_axis_tdata(rx_word), .s_axis_tkeep(rx_word_keep),
      .s_axis_tvalid(rx_word_valid), .s_axis_tlast(rx_word_last), .s_axis_tuser(rx_word_user), .clk(clk), .rst(rst),
      .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(m_axis_tkeep), .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tlast(m_axis_tlast), .m_axis_tuser(m_axis_tuser)
  );
  toggle_sync no_sfd_sync (
      .from_clk(gmii_rx_clk), .from_rst(rx_rst_events), .pulse(rx_no_sfd), .to_clk(clk), .to_rst(rst_rx_events),
      .event_o(no_sfd)
  );
  toggle_sync crowded_sync (
      .from_clk(gmii_rx_clk), .from_rst(rx_rst_events), .pulse(rx_crowded), .to_clk(clk), .to_rst(rst_rx_events),
      .event_o(crowded)
  );

  // Transmit.
  wire [63:0] tx_word;
  wire [7:0] tx_word_keep, tx_byte;
  wire tx_word_valid, tx_word_ready, tx_word_last, tx_byte_valid, tx_byte_last, tx_byte_ready, tx_sent, tx_cut;
  tx_crossing tx_cdc (
      .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep), .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast), .tx_clk(gmii_tx_clk), .tx_arst(tx_either),
      .m_axis_tdata(tx_word), .m_axis_tkeep(tx_word_keep), .m_axis_tvalid(tx_word_valid),
      .m_axis_tready(tx_word_ready), .m_axis_tlast(tx_word_last)
  );
  mac_gearbox_tx gearbox_tx (
      .clk(gmii_tx_clk), .rst(tx_rst), .s_axis_tdata(tx_word), .s_axis_tkeep(tx_word_keep),
      .s_axis_tvalid(tx_word_valid), .s_axis_tlast(tx_word_last), .s_axis_tready(tx_word_ready),
      .m_axis_tdata(tx_byte), .m_axis_tvalid(tx_byte_valid), .m_axis_tlast(tx_byte_last),
      .m_axis_tready(tx_byte_ready)
  );
  gmii_mac_tx mac_tx (
      .clk(gmii_tx_clk), .rst(tx_rst), .s_axis_tdata(tx_byte), .s_axis_tvalid(tx_byte_valid),
      .s_axis_tlast(tx_byte_last), .s_axis_tready(tx_byte_ready), .gmii_txd(gmii_txd), .gmii_tx_en(gmii_tx_en),
      .gmii_tx_er(gmii_tx_er), .sent(tx_sent), .cut(tx_cut)
  );
  toggle_sync sent_sync (
      .from_clk(gmii_tx_clk), .from_rst(tx_rst_events), .pulse(tx_sent), .to_clk(clk), .to_rst(rst_tx_events),
      .event_o(sent)
  );
  toggle_sync cut_sync (
      .from_clk(gmii_tx_clk), .from_rst(tx_rst_events), .pulse(tx_cut), .to_clk(clk), .to_rst(rst_tx_events),
      .event_o(cut)
  );
endmodule

`default_nettype wire

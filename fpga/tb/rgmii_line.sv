// SPDX-License-Identifier: MIT OR Apache-2.0
// For simulation: the MAC behind a board's RGMII pads. Time inside the pads is told by `step`, which turns over every
// 25 ps. The received clock comes as the registers see it: the way from its pad to them is the bench's.
`default_nettype none

module rgmii_line #(
    parameter RX_DELAY = 0,
    parameter TX_DELAY = 0
) (
    input  wire        step,
    input  wire        rx_clk,
    input  wire [3:0]  rgmii_rxd,
    input  wire        rgmii_rx_ctl,
    input  wire        tx_clk,
    input  wire        tx_arst,
    output wire        rgmii_txc,
    output wire [3:0]  rgmii_txd,
    output wire        rgmii_tx_ctl,
    input  wire        clk,
    input  wire        arst,
    output wire [63:0] m_axis_tdata,
    output wire [7:0]  m_axis_tkeep,
    output wire        m_axis_tvalid,
    output wire        m_axis_tlast,
    output wire [1:0]  m_axis_tuser,
    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tvalid,
    output wire        s_axis_tready,
    input  wire        s_axis_tlast,
    output wire        no_sfd,
    output wire        crowded,
    output wire        sent,
    output wire        cut
);
  wire rst, pads_arst;
  reset_sync core_reset (.clk(clk), .arst(arst), .rst(rst));
  reset_sync pads_reset (.clk(tx_clk), .arst(tx_arst || arst), .rst(pads_arst));
  wire [7:0] rxd, txd;
  wire rx_dv, rx_er, tx_en, tx_er;
  rgmii_ecp5 #(.RX_DELAY(RX_DELAY), .TX_DELAY(TX_DELAY)) lines (
      .rx_clk(rx_clk), .rgmii_rxd(rgmii_rxd), .rgmii_rx_ctl(rgmii_rx_ctl), .rxd(rxd), .rx_dv(rx_dv), .rx_er(rx_er),
      .tx_clk(tx_clk), .tx_arst(pads_arst), .txd(txd), .tx_en(tx_en), .tx_er(tx_er), .rgmii_txc(rgmii_txc),
      .rgmii_txd(rgmii_txd), .rgmii_tx_ctl(rgmii_tx_ctl)
  );
  nic_mac mac (
      .gmii_rx_clk(rx_clk), .rx_arst(1'b0), .gmii_rxd(rxd), .gmii_rx_dv(rx_dv), .gmii_rx_er(rx_er),
      .gmii_tx_clk(tx_clk), .tx_arst(tx_arst), .gmii_txd(txd), .gmii_tx_en(tx_en), .gmii_tx_er(tx_er), .clk(clk),
      .arst(arst), .rst(rst), .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid), .m_axis_tlast(m_axis_tlast), .m_axis_tuser(m_axis_tuser),
      .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep), .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast), .no_sfd(no_sfd), .crowded(crowded),
      .sent(sent), .cut(cut)
  );
endmodule

`default_nettype wire

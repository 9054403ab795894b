// SPDX-License-Identifier: MIT OR Apache-2.0
// RGMII at 1 Gbit/s on the pads of an ECP5, to GMII: two nibbles a clock, the lower one at the rising edge. The receiver
// takes data 1 to 3 ns after they have changed, 2 ns at best. The transmit clock is delayed for that by the PHY or here
// (DELAYG, 25 ps a step). The received one is late by what the PHY adds and by its way to the registers; the data are
// delayed here by what that is more than 2 ns.
`default_nettype none

module rgmii_ecp5 #(
    parameter RX_DELAY = 0,   // of the data, steps of 25 ps
    parameter TX_DELAY = 0    // of the clock; 80 if the PHY does not delay
) (
    input  wire       rx_clk,
    input  wire [3:0] rgmii_rxd,
    input  wire       rgmii_rx_ctl,
    output wire [7:0] rxd,
    output wire       rx_dv,
    output wire       rx_er,
    input  wire       tx_clk,
    input  wire       tx_arst,
    input  wire [7:0] txd,
    input  wire       tx_en,
    input  wire       tx_er,
    output wire       rgmii_txc,
    output wire [3:0] rgmii_txd,
    output wire       rgmii_tx_ctl
);
  wire [4:0] pads = {rgmii_rx_ctl, rgmii_rxd};
  wire [4:0] delayed, rise, fall;
  wire [4:0] tx_rise = {tx_en, txd[3:0]};
  wire [4:0] tx_fall = {tx_en ^ tx_er, txd[7:4]};
  wire [4:0] tx_pads;
  wire clock_pad;
  genvar g;
  generate
    for (g = 0; g < 5; g = g + 1) begin : lines
      DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(RX_DELAY)) delay (.A(pads[g]), .Z(delayed[g]));
      IDDRX1F in (.D(delayed[g]), .SCLK(rx_clk), .RST(1'b0), .Q0(rise[g]), .Q1(fall[g]));
      ODDRX1F out (.D0(tx_rise[g]), .D1(tx_fall[g]), .SCLK(tx_clk), .RST(tx_arst), .Q(tx_pads[g]));
    end
  endgenerate
  ODDRX1F clock (.D0(1'b1), .D1(1'b0), .SCLK(tx_clk), .RST(tx_arst), .Q(clock_pad));
  DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(TX_DELAY)) clock_delay (.A(clock_pad), .Z(rgmii_txc));
  assign {rgmii_tx_ctl, rgmii_txd} = tx_pads;
  assign rxd = {fall[3:0], rise[3:0]};
  assign rx_dv = rise[4];
  assign rx_er = rise[4] ^ fall[4];
endmodule

`default_nettype wire

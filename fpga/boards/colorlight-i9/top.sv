// SPDX-License-Identifier: MIT OR Apache-2.0
// Colorlight i9 v7.2: LFE5U-45F, two Broadcom B50612D PHYs on RGMII, 25 MHz. Bus and packet logic at 62.5 MHz, which is
// half of what the transmit side has anyway: one PLL, 500 MHz inside.
`default_nettype none

module top (
    input  wire       clk25,
    input  wire       button_n,
    output wire       led_n,
    input  wire       uart_rxd,
    output wire       uart_txd,
    output wire       phy_rst_n,
    output wire       mdc,
    inout  wire       mdio,
    input  wire [1:0] rgmii_rxc,
    input  wire [7:0] rgmii_rxd,
    input  wire [1:0] rgmii_rx_ctl,
    output wire [1:0] rgmii_txc,
    output wire [7:0] rgmii_txd,
    output wire [1:0] rgmii_tx_ctl
);
  wire clk, tx_clk, locked;
  (* FREQUENCY_PIN_CLKI = "25", FREQUENCY_PIN_CLKOP = "125", FREQUENCY_PIN_CLKOS = "62.5" *)
  EHXPLLL #(
      .CLKI_DIV(1), .CLKFB_DIV(5), .CLKOP_DIV(4), .CLKOS_DIV(8), .CLKOP_ENABLE("ENABLED"), .CLKOS_ENABLE("ENABLED"),
      .CLKOP_CPHASE(3), .CLKOS_CPHASE(7), .FEEDBK_PATH("CLKOP")
  ) pll (
      .CLKI(clk25), .CLKFB(tx_clk), .CLKOP(tx_clk), .CLKOS(clk), .LOCK(locked), .RST(1'b0), .STDBY(1'b0),
      .PHASESEL0(1'b0), .PHASESEL1(1'b0), .PHASEDIR(1'b0), .PHASESTEP(1'b0), .PHASELOADREG(1'b0),
      .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0), .ENCLKOS(1'b0)
  );

  // The PHYs are held in reset for 20 ms after the clock is there, the rest for as long again: they need 10 ms and time
  // to begin.
  reg [20:0] age;
  wire begins = !locked || !button_n;
  always_ff @(posedge clk25 or posedge begins)
    if (begins) age <= 0;
    else if (!age[20]) age <= age + 1'b1;
  assign phy_rst_n = age[19] || age[20];
  wire arst = !age[20];
  wire tx_arst;
  reset_sync tx_reset (.clk(tx_clk), .arst(arst), .rst(tx_arst));

  wire [15:0] rxd, txd;
  wire [1:0] rx_dv, rx_er, tx_en, tx_er, irq;
  genvar n;
  generate
    for (n = 0; n < 2; n = n + 1) begin : ports
      // The PHYs delay the clock that they receive from here. Theirs is to come to the registers 3 to 5 ns late.
      rgmii_ecp5 #(.RX_DELAY(80)) pads (
          .rx_clk(rgmii_rxc[n]), .rgmii_rxd(rgmii_rxd[4*n+:4]), .rgmii_rx_ctl(rgmii_rx_ctl[n]), .rxd(rxd[8*n+:8]),
          .rx_dv(rx_dv[n]), .rx_er(rx_er[n]), .tx_clk(tx_clk), .tx_arst(tx_arst), .txd(txd[8*n+:8]),
          .tx_en(tx_en[n]), .tx_er(tx_er[n]), .rgmii_txc(rgmii_txc[n]), .rgmii_txd(rgmii_txd[4*n+:4]),
          .rgmii_tx_ctl(rgmii_tx_ctl[n])
      );
    end
  endgenerate
  wire mdio_i, mdio_o, mdio_t;
  BB mdio_pad (.I(mdio_o), .T(mdio_t), .O(mdio_i), .B(mdio));
  cards_on_chip router (
      .clk(clk), .arst(arst), .rx_clk(rgmii_rxc), .tx_clk(tx_clk), .rxd(rxd), .rx_dv(rx_dv), .rx_er(rx_er), .txd(txd),
      .tx_en(tx_en), .tx_er(tx_er), .irq(irq), .uart_rxd(uart_rxd), .uart_txd(uart_txd), .mdc(mdc), .mdio_i(mdio_i),
      .mdio_o(mdio_o), .mdio_t(mdio_t)
  );
  assign led_n = irq == 0;
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// ECPIX-5: LFE5UM5G-85F, one Microchip KSZ9031RNX PHY on RGMII, 100 MHz. With a single port there is one card and nobody
// to send bursts to: this is for looking at MAC, rules and counters on a line. Bus and packet logic at 100 MHz.
`default_nettype none

module top (
    input  wire       clk100,
    input  wire       rst_n,
    output wire       led_n,
    input  wire       uart_rxd,
    output wire       uart_txd,
    output wire       phy_rst_n,
    output wire       mdc,
    inout  wire       mdio,
    input  wire       rgmii_rxc,
    input  wire [3:0] rgmii_rxd,
    input  wire       rgmii_rx_ctl,
    output wire       rgmii_txc,
    output wire [3:0] rgmii_txd,
    output wire       rgmii_tx_ctl
);
  wire clk, tx_clk, locked;
  // 500 MHz inside.
  (* FREQUENCY_PIN_CLKI = "100", FREQUENCY_PIN_CLKOP = "125", FREQUENCY_PIN_CLKOS = "100" *)
  EHXPLLL #(
      .CLKI_DIV(4), .CLKFB_DIV(5), .CLKOP_DIV(4), .CLKOS_DIV(5), .CLKOP_ENABLE("ENABLED"), .CLKOS_ENABLE("ENABLED"),
      .CLKOP_CPHASE(3), .CLKOS_CPHASE(4), .FEEDBK_PATH("CLKOP")
  ) pll (
      .CLKI(clk100), .CLKFB(tx_clk), .CLKOP(tx_clk), .CLKOS(clk), .LOCK(locked), .RST(1'b0), .STDBY(1'b0),
      .PHASESEL0(1'b0), .PHASESEL1(1'b0), .PHASEDIR(1'b0), .PHASESTEP(1'b0), .PHASELOADREG(1'b0),
      .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0), .ENCLKOS(1'b0)
  );

  // The PHY is held in reset for 10 ms after the clock is there, the rest for as long again.
  reg [20:0] age;
  wire begins = !locked || !rst_n;
  always_ff @(posedge clk100 or posedge begins)
    if (begins) age <= 0;
    else if (!age[20]) age <= age + 1'b1;
  wire phy_ready = age[20] || &age[19:18];
  assign phy_rst_n = phy_ready;
  wire arst = !age[20];
  wire tx_arst;
  reset_sync tx_reset (.clk(tx_clk), .arst(arst), .rst(tx_arst));

  wire [7:0] rxd, txd;
  wire rx_dv, rx_er, tx_en, tx_er, irq;
  // The PHY takes what it gets as it comes. Its own clock is to come to the registers 1 to 3 ns late.
  rgmii_ecp5 #(.TX_DELAY(80)) pads (
      .rx_clk(rgmii_rxc), .rgmii_rxd(rgmii_rxd), .rgmii_rx_ctl(rgmii_rx_ctl), .rxd(rxd), .rx_dv(rx_dv), .rx_er(rx_er),
      .tx_clk(tx_clk), .tx_arst(tx_arst), .txd(txd), .tx_en(tx_en), .tx_er(tx_er), .rgmii_txc(rgmii_txc),
      .rgmii_txd(rgmii_txd), .rgmii_tx_ctl(rgmii_tx_ctl)
  );
  wire mdio_i, mdio_o, mdio_t;
  BB mdio_pad (.I(mdio_o), .T(mdio_t), .O(mdio_i), .B(mdio));
  cards_on_chip #(.CARDS(1), .UART_CLOCKS(868), .MDIO_CLOCKS(20)) cards (
      .clk(clk), .arst(arst), .rx_clk(rgmii_rxc), .tx_clk(tx_clk), .rxd(rxd), .rx_dv(rx_dv), .rx_er(rx_er), .txd(txd),
      .tx_en(tx_en), .tx_er(tx_er), .irq(irq), .uart_rxd(uart_rxd), .uart_txd(uart_txd), .mdc(mdc), .mdio_i(mdio_i),
      .mdio_o(mdio_o), .mdio_t(mdio_t)
  );
  assign led_n = !irq;
endmodule

`default_nettype wire

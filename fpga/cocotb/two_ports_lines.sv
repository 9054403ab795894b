// SPDX-License-Identifier: MIT OR Apache-2.0
// The router of two ports with its vectors as lines, which the models want, and with a fast serial line.
`default_nettype none

module two_ports_lines (
    input  wire       clk,
    input  wire       arst,
    input  wire       tx_clk,
    input  wire       rx_clk_0,
    input  wire       rx_clk_1,
    input  wire [7:0] rxd_0,
    input  wire [7:0] rxd_1,
    input  wire       rx_dv_0,
    input  wire       rx_dv_1,
    input  wire       rx_er_0,
    input  wire       rx_er_1,
    output wire [7:0] txd_0,
    output wire [7:0] txd_1,
    output wire       tx_en_0,
    output wire       tx_en_1,
    output wire       tx_er_0,
    output wire       tx_er_1,
    input  wire       uart_rxd,
    output wire       uart_txd,
    output wire       mdc,
    input  wire       mdio_i,
    output wire       mdio_o,
    output wire       mdio_t
);
  wire [1:0] irq;
  cards_on_chip #(.UART_CLOCKS(40)) router (
      .clk(clk), .arst(arst), .rx_clk({rx_clk_1, rx_clk_0}), .tx_clk(tx_clk), .rxd({rxd_1, rxd_0}),
      .rx_dv({rx_dv_1, rx_dv_0}), .rx_er({rx_er_1, rx_er_0}), .txd({txd_1, txd_0}), .tx_en({tx_en_1, tx_en_0}),
      .tx_er({tx_er_1, tx_er_0}), .irq(irq), .uart_rxd(uart_rxd), .uart_txd(uart_txd), .mdc(mdc), .mdio_i(mdio_i),
      .mdio_o(mdio_o), .mdio_t(mdio_t)
  );
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// One card to four on one chip, and the chipset's bus, arbiter and bridge as they are, with a serial line for a host: a
// router of as many ports. There is no host memory: nothing takes the slow path's frames, so that a driver gives the rings
// no buffers, and the frames are counted as dropped before a full input FIFO.
`default_nettype none

module cards_on_chip #(
    parameter CARDS = 2,
    parameter CAP_WORDS = 512,       // of an input FIFO
    parameter OUT_CAP_WORDS = 512,   // of an output FIFO
    parameter UART_CLOCKS = 542,     // of a bit
    parameter MDIO_CLOCKS = 16       // of half a period
) (
    input  wire                 clk,
    input  wire                 arst,
    input  wire [CARDS-1:0]     rx_clk,
    input  wire                 tx_clk,
    input  wire [8*CARDS-1:0]   rxd,
    input  wire [CARDS-1:0]     rx_dv,
    input  wire [CARDS-1:0]     rx_er,
    output wire [8*CARDS-1:0]   txd,
    output wire [CARDS-1:0]     tx_en,
    output wire [CARDS-1:0]     tx_er,
    output wire [CARDS-1:0]     irq,
    input  wire                 uart_rxd,
    output wire                 uart_txd,
    output wire                 mdc,
    input  wire                 mdio_i,
    output wire                 mdio_o,
    output wire                 mdio_t
);
  generate
    if (CARDS < 1 || CARDS > 4) $error("CARDS is 1 to 4");
  endgenerate
  localparam [31:0] BAR_BASE = 32'h8000_0000;
  wire rst;
  reset_sync core_reset (.clk(clk), .arst(arst), .rst(rst));

  // The bus: the OR of what the agents drive.
  localparam HOST = CARDS;   // the last agent
  wire [CARDS:0] req, gnt, frame, irdy, par, devsel, perr;
  wire [CARDS-1:0] trdy, disconnect;
  wire [3:0] cmd[0:CARDS];
  wire [63:0] ad[0:CARDS];
  reg [3:0] bus_cmd;
  reg [63:0] bus_ad;
  integer agent;
  always_comb begin
    bus_cmd = 0;
    bus_ad = 0;
    for (agent = 0; agent <= CARDS; agent = agent + 1) begin
      bus_cmd = bus_cmd | cmd[agent];
      bus_ad = bus_ad | ad[agent];
    end
  end
  pcix_arbiter #(.AGENTS(CARDS + 1)) arbiter (
      .clk(clk), .rst(rst), .extra_cycles(5'd0), .req(req), .frame(|frame), .gnt(gnt)
  );
  genvar n;
  generate
    for (n = 0; n < CARDS; n = n + 1) begin : cards
      nic_pcix #(.NICS(4), .CAP_WORDS(CAP_WORDS), .OUT_CAP_WORDS(OUT_CAP_WORDS)) card (
          .gmii_rx_clk(rx_clk[n]), .rx_arst(arst), .gmii_rxd(rxd[8*n+:8]), .gmii_rx_dv(rx_dv[n]),
          .gmii_rx_er(rx_er[n]), .gmii_tx_clk(tx_clk), .tx_arst(arst), .gmii_txd(txd[8*n+:8]),
          .gmii_tx_en(tx_en[n]), .gmii_tx_er(tx_er[n]), .pci_clk(clk), .pci_arst(arst),
          .bar(BAR_BASE + 32'h1_0000 * n), .irq(irq[n]), .req(req[n]), .gnt(gnt[n]), .frame_o(frame[n]),
          .irdy_o(irdy[n]), .cmd_o(cmd[n]), .ad_o(ad[n]), .par_o(par[n]), .devsel_o(devsel[n]), .trdy_o(trdy[n]),
          .disconnect_o(disconnect[n]), .perr_o(perr[n]), .frame_i(|frame), .irdy_i(|irdy), .cmd_i(bus_cmd),
          .ad_i(bus_ad), .par_i(|par), .devsel_i(|devsel), .trdy_i(|trdy), .disconnect_i(|disconnect),
          .perr_i(|perr)
      );
    end
  endgenerate

  wire start, read, done, error, pop, mem_wr_valid, mem_rd_valid, mdio_start, mdio_done;
  wire [31:0] addr, mem_wr_addr, mem_rd_addr, mdio_frame;
  wire [63:0] data, read_data, mem_wr_data;
  wire [9:0] mem_rd_words;
  wire [3:0] mem_rd_requester, mem_rd_tag;
  wire [15:0] mdio_data;
  wire unused = |{pop, mem_wr_valid, mem_rd_valid, mem_wr_addr, mem_rd_addr, mem_wr_data, mem_rd_words,
                  mem_rd_requester, mem_rd_tag};
  host_bridge bridge (
      .clk(clk), .rst(rst), .mem_wr_valid(mem_wr_valid), .mem_wr_addr(mem_wr_addr), .mem_wr_data(mem_wr_data),
      .mem_rd_valid(mem_rd_valid), .mem_rd_addr(mem_rd_addr), .mem_rd_words(mem_rd_words),
      .mem_rd_requester(mem_rd_requester), .mem_rd_tag(mem_rd_tag), .start(start), .tag(4'd0),
      .cmd(read ? pcix_pkg::CMD_READ_DWORD : pcix_pkg::CMD_WRITE), .addr(addr), .words(10'd1), .data(data),
      .pop(pop), .done(done), .error(error), .read_data(read_data), .req(req[HOST]), .gnt(gnt[HOST]), .frame_o(frame[HOST]),
      .irdy_o(irdy[HOST]), .cmd_o(cmd[HOST]), .ad_o(ad[HOST]), .par_o(par[HOST]), .devsel_o(devsel[HOST]), .perr_o(perr[HOST]),
      .frame_i(|frame), .irdy_i(|irdy), .cmd_i(bus_cmd), .ad_i(bus_ad), .par_i(|par), .devsel_i(|devsel),
      .trdy_i(|trdy), .disconnect_i(|disconnect), .perr_i(|perr)
  );
  wire rx_valid, tx_valid, tx_ready;
  wire [7:0] rx_data, tx_data;
  uart #(.CLOCKS(UART_CLOCKS)) serial (
      .clk(clk), .rst(rst), .rxd(uart_rxd), .txd(uart_txd), .rx_valid(rx_valid), .rx_data(rx_data),
      .tx_valid(tx_valid), .tx_ready(tx_ready), .tx_data(tx_data)
  );
  uart_host host (
      .clk(clk), .rst(rst), .rx_valid(rx_valid), .rx_data(rx_data), .tx_valid(tx_valid), .tx_ready(tx_ready),
      .tx_data(tx_data), .start(start), .read(read), .addr(addr), .data(data), .done(done), .error(error),
      .read_data(read_data), .mdio_start(mdio_start), .mdio_frame(mdio_frame), .mdio_done(mdio_done),
      .mdio_data(mdio_data)
  );
  mdio_master #(.HALF_CLOCKS(MDIO_CLOCKS)) management (
      .clk(clk), .rst(rst), .start(mdio_start), .frame(mdio_frame), .done(mdio_done), .data(mdio_data), .mdc(mdc),
      .mdio_i(mdio_i), .mdio_o(mdio_o), .mdio_t(mdio_t)
  );
endmodule

`default_nettype wire

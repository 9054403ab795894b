// SPDX-License-Identifier: MIT OR Apache-2.0
// The NIC on AXI4: its BAR as a slave, its sequences as a master. Words are whole (64 bits, all strobes); a write that is
// not, or that comes while the card is closed, is answered with SLVERR and not used. A read that was given up is known
// by its ID when its data come late. What AXI answers for a write counts for all of its words: a slave that refuses some
// must have used none. AXI knows no lost answer, so a slave that never answers holds its channel until a reset.
`default_nettype none

module nic_axi #(
    parameter NICS = 4,               // cards that can be addressed; 4 or 8
    parameter CAP_WORDS = 1920,       // of every input FIFO
    parameter OUT_CAP_WORDS = 1920,   // of the output FIFOs
    parameter ID_W = 4                // bits of the slave's IDs; the master's have four
) (
    input  wire            gmii_rx_clk,
    input  wire            rx_arst,
    input  wire [7:0]      gmii_rxd,
    input  wire            gmii_rx_dv,
    input  wire            gmii_rx_er,
    input  wire            gmii_tx_clk,
    input  wire            tx_arst,
    output wire [7:0]      gmii_txd,
    output wire            gmii_tx_en,
    output wire            gmii_tx_er,
    input  wire            clk,
    input  wire            arst,
    output wire            irq,
    input  wire [ID_W-1:0] s_axi_awid,
    input  wire [15:0]     s_axi_awaddr,
    input  wire [7:0]      s_axi_awlen,
    input  wire [2:0]      s_axi_awsize,
    input  wire [1:0]      s_axi_awburst,
    input  wire            s_axi_awvalid,
    output wire            s_axi_awready,
    input  wire [63:0]     s_axi_wdata,
    input  wire [7:0]      s_axi_wstrb,
    input  wire            s_axi_wlast,
    input  wire            s_axi_wvalid,
    output wire            s_axi_wready,
    output wire [ID_W-1:0] s_axi_bid,
    output wire [1:0]      s_axi_bresp,
    output wire            s_axi_bvalid,
    input  wire            s_axi_bready,
    input  wire [ID_W-1:0] s_axi_arid,
    input  wire [15:0]     s_axi_araddr,
    input  wire [7:0]      s_axi_arlen,
    input  wire [2:0]      s_axi_arsize,
    input  wire [1:0]      s_axi_arburst,
    input  wire            s_axi_arvalid,
    output wire            s_axi_arready,
    output wire [ID_W-1:0] s_axi_rid,
    output wire [63:0]     s_axi_rdata,
    output wire [1:0]      s_axi_rresp,
    output wire            s_axi_rlast,
    output wire            s_axi_rvalid,
    input  wire            s_axi_rready,
    output wire [3:0]      m_axi_awid,
    output wire [31:0]     m_axi_awaddr,
    output wire [7:0]      m_axi_awlen,
    output wire [2:0]      m_axi_awsize,
    output wire [1:0]      m_axi_awburst,
    output wire            m_axi_awvalid,
    input  wire            m_axi_awready,
    output wire [63:0]     m_axi_wdata,
    output wire [7:0]      m_axi_wstrb,
    output wire            m_axi_wlast,
    output wire            m_axi_wvalid,
    input  wire            m_axi_wready,
    input  wire [3:0]      m_axi_bid,
    input  wire [1:0]      m_axi_bresp,
    input  wire            m_axi_bvalid,
    output wire            m_axi_bready,
    output wire [3:0]      m_axi_arid,
    output wire [31:0]     m_axi_araddr,
    output wire [7:0]      m_axi_arlen,
    output wire [2:0]      m_axi_arsize,
    output wire [1:0]      m_axi_arburst,
    output wire            m_axi_arvalid,
    input  wire            m_axi_arready,
    input  wire [3:0]      m_axi_rid,
    input  wire [63:0]     m_axi_rdata,
    input  wire [1:0]      m_axi_rresp,
    input  wire            m_axi_rlast,
    input  wire            m_axi_rvalid,
    output wire            m_axi_rready
);
  wire rst;
  reset_sync bus_reset (.clk(clk), .arst(arst), .rst(rst));

  wire open, wr_valid, rd_valid, rd_done, m_start, m_read, m_pop, m_accept, m_done, m_error, rsp_valid, rsp_error;
  wire [15:0] wr_addr;
  wire [11:0] rd_addr;
  wire [63:0] wr_data, rd_data, m_data, rsp_data;
  wire [31:0] m_addr;
  wire [9:0] m_words;
  wire [3:0] m_tag, rsp_tag, bus_id;
  wire disconnect;
  wire unused = |{bus_id, disconnect};
  nic_core #(.NICS(NICS), .CAP_WORDS(CAP_WORDS), .OUT_CAP_WORDS(OUT_CAP_WORDS)) core (
      .gmii_rx_clk(gmii_rx_clk), .rx_arst(rx_arst), .gmii_rxd(gmii_rxd), .gmii_rx_dv(gmii_rx_dv),
      .gmii_rx_er(gmii_rx_er), .gmii_tx_clk(gmii_tx_clk), .tx_arst(tx_arst), .gmii_txd(gmii_txd),
      .gmii_tx_en(gmii_tx_en), .gmii_tx_er(gmii_tx_er), .clk(clk), .arst(arst), .irq(irq), .open(open),
      .disconnect(disconnect), .bus_idle(1'b1), .bus_id(bus_id), .wr_valid(wr_valid), .wr_error(1'b0),
      .wr_addr(wr_addr), .wr_data(wr_data), .rd_valid(rd_valid), .rd_addr(rd_addr), .rd_done(rd_done),
      .rd_data(rd_data), .m_start(m_start), .m_read(m_read), .m_addr(m_addr), .m_words(m_words), .m_tag(m_tag),
      .m_data(m_data), .m_pop(m_pop), .m_accept(m_accept), .m_done(m_done), .m_error(m_error), .m_aborted(m_error),
      .m_disconnected(1'b0), .parity(m_axi_rvalid && m_axi_rlast && m_axi_rresp[1]), .rsp_valid(rsp_valid), .rsp_error(rsp_error), .rsp_tag(rsp_tag),
      .rsp_data(rsp_data)
  );
  axi_target #(.ID_W(ID_W)) target (
      .clk(clk), .rst(rst), .open(open), .awid(s_axi_awid), .awaddr(s_axi_awaddr), .awlen(s_axi_awlen),
      .awsize(s_axi_awsize), .awburst(s_axi_awburst), .awvalid(s_axi_awvalid), .awready(s_axi_awready),
      .wdata(s_axi_wdata), .wstrb(s_axi_wstrb), .wlast(s_axi_wlast), .wvalid(s_axi_wvalid), .wready(s_axi_wready),
      .bid(s_axi_bid), .bresp(s_axi_bresp), .bvalid(s_axi_bvalid), .bready(s_axi_bready), .arid(s_axi_arid),
      .araddr(s_axi_araddr), .arlen(s_axi_arlen), .arsize(s_axi_arsize), .arburst(s_axi_arburst),
      .arvalid(s_axi_arvalid), .arready(s_axi_arready), .rid(s_axi_rid), .rdata(s_axi_rdata), .rresp(s_axi_rresp),
      .rlast(s_axi_rlast), .rvalid(s_axi_rvalid), .rready(s_axi_rready), .wr_valid(wr_valid), .wr_addr(wr_addr),
      .wr_data(wr_data), .rd_valid(rd_valid), .rd_addr(rd_addr), .rd_done(rd_done), .rd_data(rd_data)
  );
  axi_master master (
      .clk(clk), .rst(rst), .start(m_start), .read(m_read), .addr(m_addr), .words(m_words), .tag(m_tag),
      .data(m_data), .pop(m_pop), .accept(m_accept), .done(m_done), .error(m_error), .rsp_valid(rsp_valid),
      .rsp_error(rsp_error), .rsp_tag(rsp_tag), .rsp_data(rsp_data), .awid(m_axi_awid), .awaddr(m_axi_awaddr),
      .awlen(m_axi_awlen), .awsize(m_axi_awsize), .awburst(m_axi_awburst), .awvalid(m_axi_awvalid),
      .awready(m_axi_awready), .wdata(m_axi_wdata), .wstrb(m_axi_wstrb), .wlast(m_axi_wlast), .wvalid(m_axi_wvalid),
      .wready(m_axi_wready), .bid(m_axi_bid), .bresp(m_axi_bresp), .bvalid(m_axi_bvalid), .bready(m_axi_bready),
      .arid(m_axi_arid), .araddr(m_axi_araddr), .arlen(m_axi_arlen), .arsize(m_axi_arsize),
      .arburst(m_axi_arburst), .arvalid(m_axi_arvalid), .arready(m_axi_arready), .rid(m_axi_rid),
      .rdata(m_axi_rdata), .rresp(m_axi_rresp), .rlast(m_axi_rlast), .rvalid(m_axi_rvalid), .rready(m_axi_rready)
  );
endmodule

`default_nettype wire

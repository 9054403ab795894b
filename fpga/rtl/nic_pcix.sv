// SPDX-License-Identifier: MIT OR Apache-2.0
// The NIC on the PCI-X-like bus.
`default_nettype none

module nic_pcix #(
    parameter NICS = 4,               // cards that can be addressed; 4 or 8
    parameter CAP_WORDS = 1920,       // of every input FIFO
    parameter OUT_CAP_WORDS = 1920    // of the output FIFOs
) (
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
    input  wire        pci_clk,
    input  wire        pci_arst,
    input  wire [31:0] bar,           // as configuration has set it
    output wire        irq,
    output wire        req,
    input  wire        gnt,
    output wire        frame_o,
    output wire        irdy_o,
    output wire [3:0]  cmd_o,
    output wire [63:0] ad_o,
    output wire        par_o,
    output wire        devsel_o,
    output wire        trdy_o,
    output wire        disconnect_o,
    output wire        perr_o,
    input  wire        frame_i,
    input  wire        irdy_i,
    input  wire [3:0]  cmd_i,
    input  wire [63:0] ad_i,
    input  wire        par_i,
    input  wire        devsel_i,
    input  wire        trdy_i,
    input  wire        disconnect_i,
    input  wire        perr_i
);
  wire rst;
  reset_sync bus_reset (.clk(pci_clk), .arst(pci_arst), .rst(rst));

  wire open, disconnect, wr_valid, wr_error, wr_split, rd_valid, rd_done;
  wire [3:0] bus_id, wr_tag;
  wire [31:0] wr_addr, rd_addr;
  wire [63:0] wr_data, rd_data, target_ad, master_ad;
  wire target_par, master_par;
  wire m_start, m_read, m_pop, m_accept, m_done, m_error, m_aborted, m_disconnected, m_parity;
  wire [3:0] m_tag;
  wire [31:0] m_addr;
  wire [9:0] m_words;
  wire [63:0] m_data;
  nic_core #(.NICS(NICS), .CAP_WORDS(CAP_WORDS), .OUT_CAP_WORDS(OUT_CAP_WORDS)) core (
      .gmii_rx_clk(gmii_rx_clk), .rx_arst(rx_arst), .gmii_rxd(gmii_rxd), .gmii_rx_dv(gmii_rx_dv),
      .gmii_rx_er(gmii_rx_er), .gmii_tx_clk(gmii_tx_clk), .tx_arst(tx_arst), .gmii_txd(gmii_txd),
      .gmii_tx_en(gmii_tx_en), .gmii_tx_er(gmii_tx_er), .clk(pci_clk), .arst(pci_arst), .irq(irq), .open(open),
      .disconnect(disconnect), .bus_idle(!frame_i), .bus_id(bus_id), .wr_valid(wr_valid && !wr_split),
      .wr_error(wr_error), .wr_addr(wr_addr[15:0]), .wr_data(wr_data), .rd_valid(rd_valid), .rd_addr(rd_addr[11:0]),
      .rd_done(rd_done), .rd_data(rd_data), .m_start(m_start), .m_read(m_read), .m_addr(m_addr), .m_words(m_words),
      .m_tag(m_tag), .m_data(m_data), .m_pop(m_pop), .m_accept(m_accept), .m_done(m_done), .m_error(m_error),
      .m_aborted(m_aborted), .m_disconnected(m_disconnected), .parity(m_parity || (wr_valid && wr_error)),
      .rsp_valid(wr_valid && wr_split),
      .rsp_error(wr_error), .rsp_tag(wr_tag), .rsp_data(wr_data)
  );
  // A card reads blocks only of the host, and is not read in blocks.
  wire block_valid;
  wire [31:0] block_addr;
  wire [9:0] block_words;
  wire [3:0] block_requester, block_tag;
  wire [63:0] m_read_data;
  wire unused = |{block_valid, block_addr, block_words, block_requester, block_tag, m_read_data, wr_addr[31:16],
                  rd_addr[31:12]};
  pcix_target target (
      .clk(pci_clk), .rst(rst), .base(bar), .window(32'hffff_0000), .open(open), .want_disconnect(disconnect),
      .frame_i(frame_i), .irdy_i(irdy_i), .cmd_i(cmd_i), .ad_i(ad_i), .par_i(par_i), .devsel_o(devsel_o),
      .trdy_o(trdy_o), .disconnect_o(disconnect_o), .ad_o(target_ad), .par_o(target_par), .perr_o(perr_o),
      .wr_valid(wr_valid), .wr_error(wr_error), .wr_split(wr_split), .wr_tag(wr_tag), .wr_addr(wr_addr),
      .wr_data(wr_data), .rd_valid(rd_valid), .rd_addr(rd_addr), .rd_done(rd_done), .rd_data(rd_data),
      .block_valid(block_valid), .block_addr(block_addr), .block_words(block_words),
      .block_requester(block_requester), .block_tag(block_tag)
  );
  pcix_master master (
      .clk(pci_clk), .rst(rst), .id(bus_id), .tag(m_tag), .start(m_start),
      .cmd(m_read ? pcix_pkg::CMD_READ : pcix_pkg::CMD_WRITE), .addr(m_addr), .words(m_words), .data(m_data),
      .pop(m_pop), .accept(m_accept), .done(m_done), .error(m_error), .aborted(m_aborted),
      .disconnected(m_disconnected), .parity(m_parity), .read_data(m_read_data), .req(req), .gnt(gnt),
      .frame_o(frame_o), .irdy_o(irdy_o), .cmd_o(cmd_o), .ad_o(master_ad), .par_o(master_par), .devsel_i(devsel_i),
      .trdy_i(trdy_i), .disconnect_i(disconnect_i), .ad_i(ad_i), .par_i(par_i), .perr_i(perr_i)
  );
  assign ad_o = master_ad | target_ad;
  assign par_o = master_par | target_par;
endmodule

`default_nettype wire

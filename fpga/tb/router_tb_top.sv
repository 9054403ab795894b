// A router: COUNT cards and the host on one bus. Wires that several agents drive are the OR of what they drive, and
// agents that do not drive hold theirs at zero. bus_busy and bus_data tell how the bus is used.
`default_nettype none

module router_tb_top #(
    parameter COUNT = 4,       // cards
    parameter NICS = 4,        // cards that each can address; 4 or 8
    parameter OUT_CAP_WORDS = 1920
) (
    input  wire               mac_clk,
    input  wire               mac_rst,
    input  wire [8*COUNT-1:0] rxd,
    input  wire [COUNT-1:0]   rx_dv,
    output wire [8*COUNT-1:0] txd,
    output wire [COUNT-1:0]   tx_en,
    output wire [COUNT-1:0]   tx_er,
    input  wire               pci_clk,
    input  wire               pci_rst,
    input  wire [4:0]         bus_extra_cycles,
    output wire [COUNT-1:0]   irq,
    output wire               bus_busy,
    output wire               bus_data,
    // The host (see host_bridge).
    output wire               mem_wr_valid,
    output wire [31:0]        mem_wr_addr,
    output wire [63:0]        mem_wr_data,
    output wire               mem_rd_valid,
    output wire [31:0]        mem_rd_addr,
    output wire [9:0]         mem_rd_words,
    output wire [3:0]         mem_rd_requester,
    input  wire               host_start,
    input  wire [3:0]         host_cmd,
    input  wire [31:0]        host_addr,
    input  wire [9:0]         host_words,
    input  wire [63:0]        host_data,
    output wire               host_pop,
    output wire               host_done,
    output wire               host_aborted,
    output wire [63:0]        host_read_data
);
  wire [COUNT:0] req, gnt, frame, irdy, devsel, trdy, disc;
  wire [4*COUNT+3:0] cmd;
  wire [64*COUNT+63:0] ad;
  reg [3:0] bus_cmd;
  reg [63:0] bus_ad;
  wire bus_frame = frame != 0;
  wire bus_irdy = irdy != 0;
  wire bus_devsel = devsel != 0;
  wire bus_trdy = trdy != 0;
  wire bus_disconnect = disc != 0;
  integer i;
  always @* begin
    bus_cmd = 0;
    bus_ad = 0;
    for (i = 0; i <= COUNT; i = i + 1) begin
      bus_cmd = bus_cmd | (cmd[4*i+:4] & {4{frame[i]}});
      bus_ad = bus_ad | ad[64*i+:64];
    end
  end
  assign bus_busy = bus_frame || req != 0;
  assign bus_data = bus_irdy || bus_trdy;

  pcix_arbiter #(.AGENTS(COUNT + 1)) arbiter (
      .clk(pci_clk), .rst(pci_rst), .extra_cycles(bus_extra_cycles), .req(req), .frame(bus_frame), .gnt(gnt)
  );
  host_bridge host (
      .clk(pci_clk), .rst(pci_rst), .mem_wr_valid(mem_wr_valid), .mem_wr_addr(mem_wr_addr),
      .mem_wr_data(mem_wr_data), .mem_rd_valid(mem_rd_valid), .mem_rd_addr(mem_rd_addr),
      .mem_rd_words(mem_rd_words), .mem_rd_requester(mem_rd_requester), .start(host_start), .cmd(host_cmd),
      .addr(host_addr), .words(host_words), .data(host_data), .pop(host_pop), .done(host_done),
      .aborted(host_aborted), .read_data(host_read_data), .req(req[COUNT]), .gnt(gnt[COUNT]),
      .frame_o(frame[COUNT]), .irdy_o(irdy[COUNT]), .cmd_o(cmd[4*COUNT+:4]), .ad_o(ad[64*COUNT+:64]),
      .devsel_o(devsel[COUNT]), .frame_i(bus_frame), .irdy_i(bus_irdy), .cmd_i(bus_cmd), .ad_i(bus_ad),
      .devsel_i(bus_devsel), .trdy_i(bus_trdy), .disconnect_i(bus_disconnect)
  );
  assign trdy[COUNT] = 1'b0;
  assign disc[COUNT] = 1'b0;

  genvar g;
  generate
    for (g = 0; g < COUNT; g = g + 1) begin : card
      wire [15:0] bar_high = 16'h8000 + g;
      fpga_nic #(.NICS(NICS), .OUT_CAP_WORDS(OUT_CAP_WORDS)) nic (
          .mac_clk(mac_clk), .mac_rst(mac_rst), .gmii_rxd(rxd[8*g+:8]), .gmii_rx_dv(rx_dv[g]), .gmii_rx_er(1'b0),
          .gmii_txd(txd[8*g+:8]), .gmii_tx_en(tx_en[g]), .gmii_tx_er(tx_er[g]), .pci_clk(pci_clk),
          .pci_rst(pci_rst), .bar({bar_high, 16'd0}), .irq(irq[g]), .req(req[g]), .gnt(gnt[g]), .frame_o(frame[g]),
          .irdy_o(irdy[g]), .cmd_o(cmd[4*g+:4]), .ad_o(ad[64*g+:64]), .devsel_o(devsel[g]), .trdy_o(trdy[g]),
          .disconnect_o(disc[g]), .frame_i(bus_frame), .irdy_i(bus_irdy), .cmd_i(bus_cmd), .ad_i(bus_ad),
          .devsel_i(bus_devsel), .trdy_i(bus_trdy), .disconnect_i(bus_disconnect)
      );
    end
  endgenerate
endmodule

`default_nettype wire

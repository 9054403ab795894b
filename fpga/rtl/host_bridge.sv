// SPDX-License-Identifier: MIT OR Apache-2.0
// The chipset as one bus agent: as a target it takes writes and block reads of host memory (addresses below 2 GiB),
// as a master it writes and reads the cards' registers and completes their reads. Memory and processor are outside,
// in the test bench.
`default_nettype none

module host_bridge (
    input  wire        clk,
    input  wire        rst,
    // To memory.
    output wire        mem_wr_valid,
    output wire [31:0] mem_wr_addr,
    output wire [63:0] mem_wr_data,
    output wire        mem_rd_valid,
    output wire [31:0] mem_rd_addr,
    output wire [9:0]  mem_rd_words,
    output wire [3:0]  mem_rd_requester,
    output wire [3:0]  mem_rd_tag,
    // From the processor: one transaction at a time.
    input  wire        start,
    input  wire [3:0]  tag,           // of a split completion
    input  wire [3:0]  cmd,
    input  wire [31:0] addr,
    input  wire [9:0]  words,
    input  wire [63:0] data,
    output wire        pop,
    output wire        done,
    output wire        error,
    output wire [63:0] read_data,
    // Bus.
    output wire        req,
    input  wire        gnt,
    output wire        frame_o,
    output wire        irdy_o,
    output wire [3:0]  cmd_o,
    output wire [63:0] ad_o,
    output wire        par_o,
    output wire        devsel_o,
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
  wire disconnected, trdy_o, disconnect_o, rd_valid, accept, aborted, parity, wr_split, target_par, wr_error, wr_valid;
  wire [3:0] wr_tag;
  wire [31:0] rd_addr;
  wire [63:0] target_ad;
  wire unused = |{disconnected, trdy_o, disconnect_o, rd_valid, accept, aborted, parity, wr_split, target_par, wr_tag,
                  rd_addr, target_ad};
  pcix_master master (
      .clk(clk), .rst(rst), .id(4'd15), .tag(tag), .start(start), .cmd(cmd), .addr(addr), .words(words), .data(data),
      .pop(pop), .accept(accept), .done(done), .error(error), .aborted(aborted), .disconnected(disconnected),
      .parity(parity), .read_data(read_data), .req(req), .gnt(gnt), .frame_o(frame_o), .irdy_o(irdy_o),
      .cmd_o(cmd_o), .ad_o(ad_o), .par_o(par_o), .devsel_i(devsel_i), .trdy_i(trdy_i), .disconnect_i(disconnect_i),
      .ad_i(ad_i), .par_i(par_i), .perr_i(perr_i)
  );
  // A word with wrong parity does not reach memory.
  assign mem_wr_valid = wr_valid && !wr_error;
  pcix_target #(.CLAIM_READS(1)) target (
      .clk(clk), .rst(rst), .base(32'd0), .window(32'h8000_0000), .open(1'b1), .want_disconnect(1'b0),
      .frame_i(frame_i), .irdy_i(irdy_i), .cmd_i(cmd_i), .ad_i(ad_i), .par_i(par_i), .devsel_o(devsel_o),
      .trdy_o(trdy_o), .disconnect_o(disconnect_o), .ad_o(target_ad), .par_o(target_par), .perr_o(perr_o),
      .wr_valid(wr_valid), .wr_error(wr_error), .wr_split(wr_split), .wr_tag(wr_tag), .wr_addr(mem_wr_addr),
      .wr_data(mem_wr_data), .rd_valid(rd_valid), .rd_addr(rd_addr), .rd_done(1'b0), .rd_data(64'd0),
      .block_valid(mem_rd_valid), .block_addr(mem_rd_addr), .block_words(mem_rd_words),
      .block_requester(mem_rd_requester), .block_tag(mem_rd_tag)
  );

`ifdef ASSERTIONS
  always @(posedge clk) if (!rst) assert (!(mem_wr_valid && wr_error));
`endif
endmodule

`default_nettype wire

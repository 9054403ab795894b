// SPDX-License-Identifier: MIT OR Apache-2.0
// The chipset: bus arbiter and host bridge. The last agent of the arbiter is the host.
`default_nettype none

module chipset #(
    parameter AGENTS = 9
) (
    input  wire              clk,
    input  wire              rst,
    input  wire [4:0]        extra_cycles,
    input  wire [AGENTS-2:0] card_req,
    output wire [AGENTS-2:0] card_gnt,
    output wire              mem_wr_valid,
    output wire [31:0]       mem_wr_addr,
    output wire [63:0]       mem_wr_data,
    output wire              mem_rd_valid,
    output wire [31:0]       mem_rd_addr,
    output wire [9:0]        mem_rd_words,
    output wire [3:0]        mem_rd_requester,
    output wire [3:0]        mem_rd_tag,
    input  wire              start,
    input  wire [3:0]        tag,
    input  wire [3:0]        cmd,
    input  wire [31:0]       addr,
    input  wire [9:0]        words,
    input  wire [63:0]       data,
    output wire              pop,
    output wire              done,
    output wire              error,
    output wire [63:0]       read_data,
    output wire              req,
    output wire              frame_o,
    output wire              irdy_o,
    output wire [3:0]        cmd_o,
    output wire [63:0]       ad_o,
    output wire              par_o,
    output wire              devsel_o,
    output wire              perr_o,
    input  wire              frame_i,
    input  wire              irdy_i,
    input  wire [3:0]        cmd_i,
    input  wire [63:0]       ad_i,
    input  wire              par_i,
    input  wire              devsel_i,
    input  wire              trdy_i,
    input  wire              disconnect_i,
    input  wire              perr_i
);
  wire host_gnt;
  pcix_arbiter #(.AGENTS(AGENTS)) arbiter (
      .clk(clk), .rst(rst), .extra_cycles(extra_cycles), .req({req, card_req}), .frame(frame_i),
      .gnt({host_gnt, card_gnt})
  );
  host_bridge bridge (
      .clk(clk), .rst(rst), .mem_wr_valid(mem_wr_valid), .mem_wr_addr(mem_wr_addr), .mem_wr_data(mem_wr_data),
      .mem_rd_valid(mem_rd_valid), .mem_rd_addr(mem_rd_addr), .mem_rd_words(mem_rd_words),
      .mem_rd_requester(mem_rd_requester), .mem_rd_tag(mem_rd_tag), .start(start), .tag(tag), .cmd(cmd), .addr(addr), .words(words), .data(data),
      .pop(pop), .done(done), .error(error), .read_data(read_data), .req(req), .gnt(host_gnt),
      .frame_o(frame_o), .irdy_o(irdy_o), .cmd_o(cmd_o), .ad_o(ad_o), .par_o(par_o), .devsel_o(devsel_o), .perr_o(perr_o), .frame_i(frame_i),
      .irdy_i(irdy_i), .cmd_i(cmd_i), .ad_i(ad_i), .par_i(par_i), .devsel_i(devsel_i), .trdy_i(trdy_i),
      .disconnect_i(disconnect_i), .perr_i(perr_i)
  );
endmodule

`default_nettype wire

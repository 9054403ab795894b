// SPDX-License-Identifier: MIT OR Apache-2.0
// Bus target: claims addresses of its window and hands out the words written, each with whether its parity was right.
// Immediate reads are answered when the register file has the value. Block reads are claimed only where CLAIM_READS is
// set (the host bridge): the split response ends them, and their address, length, requester and tag come out for the
// completer. While `open` is low, only the lowest 4 KiB of the window are claimed; a sequence under way is stopped.
`default_nettype none

module pcix_target #(
    parameter CLAIM_READS = 0
) (
    input  wire        clk,
    input  wire        rst,
    input  wire [31:0] base,
    input  wire [31:0] window,        // ones are compared with base
    input  wire        open,
    input  wire        want_disconnect,
    // Bus.
    input  wire        frame_i,
    input  wire        irdy_i,
    input  wire [3:0]  cmd_i,
    input  wire [63:0] ad_i,
    input  wire        par_i,
    output reg         devsel_o,
    output reg         trdy_o,
    output wire        disconnect_o,
    output reg  [63:0] ad_o,
    output reg         par_o,
    output reg         perr_o,
    // Writes and split completions.
    output reg         wr_valid,
    output reg         wr_error,
    output reg         wr_split,      // a split completion, with its tag
    output reg  [3:0]  wr_tag,
    output reg  [31:0] wr_addr,
    output reg  [63:0] wr_data,
    // Immediate reads.
    output reg         rd_valid,
    output wire [31:0] rd_addr,
    input  wire        rd_done,
    input  wire [63:0] rd_data,
    // Block reads.
    output reg         block_valid,
    output reg  [31:0] block_addr,
    output reg  [9:0]  block_words,
    output reg  [3:0]  block_requester,
    output reg  [3:0]  block_tag
);
  reg frame_q, selected, address, attribute, low;
  reg [3:0] cmd, cmd_q, tag;
  reg [31:0] addr, addr_q;
  reg [63:0] ad_q;       // the bus a cycle ago, whose parity is known now
  reg word_q;
  wire bad = ^{cmd_q, ad_q} != par_i;
  wire hit = ((ad_i[31:0] ^ base) & window) == 0;
  wire known = cmd_i == pcix_pkg::CMD_WRITE || cmd_i == pcix_pkg::CMD_SPLIT || cmd_i == pcix_pkg::CMD_READ_DWORD
      || (CLAIM_READS != 0 && cmd_i == pcix_pkg::CMD_READ);
  wire allowed = open || low;
  wire word = selected && irdy_i && allowed;
  assign rd_addr = addr;
  assign disconnect_o = selected && want_disconnect;

  always_ff @(posedge clk) begin
    frame_q <= frame_i;
    ad_q <= ad_i;
    cmd_q <= cmd_i;
    rd_valid <= 1'b0;
    block_valid <= 1'b0;
    address <= 1'b0;
    attribute <= 1'b0;
    trdy_o <= 1'b0;
    ad_o <= 0;
    par_o <= trdy_o ? ^{cmd_q, ad_o} : 1'b0;
    if (!frame_i) selected <= 1'b0;
    else if (!frame_q) begin
      address <= hit && known;
      cmd <= cmd_i;
      addr <= ad_i[31:0];
      low <= ((ad_i[31:0] ^ base) & 32'h0000_f000) == 0;
    end
    // In the attribute phase the address is known to be right, or nobody answers.
    if (address && frame_i && !bad && allowed) begin
      selected <= 1'b1;
      attribute <= 1'b1;
      devsel_o <= 1'b1;
      rd_valid <= cmd == pcix_pkg::CMD_READ_DWORD;
      tag <= ad_i[23:20];
    end else devsel_o <= selected && frame_i && allowed;
    // An attribute that is wrong must not become somebody's data.
    if (attribute) block_valid <= cmd == pcix_pkg::CMD_READ && !bad;
    block_addr <= addr;
    block_words <= ad_q[12:3];
    block_requester <= ad_q[19:16];
    block_tag <= ad_q[23:20];
    // Words, and a cycle later their parity.
    word_q <= word;
    addr_q <= addr;
    if (word) addr <= addr + 32'd8;
    wr_valid <= word_q;
    wr_error <= bad;
    perr_o <= word_q && bad;
    wr_split <= cmd == pcix_pkg::CMD_SPLIT;
    wr_tag <= tag;
    wr_addr <= addr_q;
    wr_data <= ad_q;
    if (selected && frame_i && rd_done) begin
      trdy_o <= 1'b1;
      ad_o <= rd_data;
    end
    if (rst) begin
      frame_q <= 1'b1;
      selected <= 1'b0;
      address <= 1'b0;
      attribute <= 1'b0;
      devsel_o <= 1'b0;
      word_q <= 1'b0;
      wr_valid <= 1'b0;
      perr_o <= 1'b0;
      rd_valid <= 1'b0;
      block_valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire

// Bus target: claims addresses of its window and hands out the words written. Immediate reads are answered when the
// register file has the value. Block reads are claimed only where CLAIM_READS is set (the host bridge): the split
// response ends them, and their address, length and requester come out for the completer.
`default_nettype none

module pcix_target #(
    parameter CLAIM_READS = 0
) (
    input  wire        clk,
    input  wire        rst,
    input  wire [31:0] base,
    input  wire [31:0] window,        // ones are compared with base
    input  wire        want_disconnect,
    // Bus.
    input  wire        frame_i,
    input  wire        irdy_i,
    input  wire [3:0]  cmd_i,
    input  wire [63:0] ad_i,
    output reg         devsel_o,
    output reg         trdy_o,
    output wire        disconnect_o,
    output reg  [63:0] ad_o,
    // Writes and split completions.
    output reg         wr_valid,
    output reg  [31:0] wr_addr,
    output reg  [63:0] wr_data,
    // Immediate reads.
    output reg         rd_valid,
    output wire [31:0] rd_addr,
    input  wire        rd_done,
    input  wire [63:0] rd_data,
    // Block reads.
    output reg         block_valid,
    output reg  [9:0]  block_words,
    output reg  [3:0]  block_requester
);
  reg frame_q, selected, attribute;
  reg [3:0] cmd;
  reg [31:0] addr;
  wire hit = ((ad_i[31:0] ^ base) & window) == 0;
  wire known = cmd_i == nic_pkg::CMD_WRITE || cmd_i == nic_pkg::CMD_SPLIT || cmd_i == nic_pkg::CMD_READ_DWORD
      || (CLAIM_READS != 0 && cmd_i == nic_pkg::CMD_READ);
  assign rd_addr = addr;
  assign disconnect_o = selected && want_disconnect;

  always @(posedge clk) begin
    frame_q <= frame_i;
    wr_valid <= 1'b0;
    rd_valid <= 1'b0;
    block_valid <= 1'b0;
    attribute <= 1'b0;
    devsel_o <= 1'b0;
    trdy_o <= 1'b0;
    ad_o <= 0;
    if (!frame_i) selected <= 1'b0;
    else if (!frame_q) begin
      selected <= hit && known;
      attribute <= hit && known;
      cmd <= cmd_i;
      addr <= ad_i[31:0];
    end
    if (attribute) begin
      devsel_o <= 1'b1;
      rd_valid <= cmd == nic_pkg::CMD_READ_DWORD;
      block_valid <= cmd == nic_pkg::CMD_READ;
      block_words <= ad_i[12:3];
      block_requester <= ad_i[19:16];
    end
    if (selected && irdy_i) begin
      wr_valid <= 1'b1;
      wr_addr <= addr;
      wr_data <= ad_i;
      addr <= addr + 32'd8;
    end
    if (selected && rd_done) begin
      trdy_o <= 1'b1;
      ad_o <= rd_data;
    end
    if (rst) begin
      frame_q <= 1'b1;
      selected <= 1'b0;
      attribute <= 1'b0;
      wr_valid <= 1'b0;
      block_valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// A bus on which anything may happen. A sequence is claimed if its command is known, its address in the window (while the
// window is not open, in its lowest 4 KiB) and both came with right parity; then every word of it is handed out once, at its
// address, and told to be wrong if and only if its parity was; nothing else is. A read of a register asks once.
module fv_pcix_target (
    input wire        clk,
    input wire        open_wish,
    input wire        frame,
    input wire        irdy,
    input wire [3:0]  cmd,
    input wire [63:0] ad,
    input wire        par,
    input wire        reads,
    input wire [63:0] value
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg [15:0] place;
  wire devsel, trdy, disconnect, par_o, perr, wr_valid, wr_error, wr_split, rd_valid, block_valid;
  wire [63:0] ad_o, wr_data;
  wire [3:0] wr_tag, block_requester, block_tag;
  wire [31:0] wr_addr, rd_addr, block_addr;
  wire [9:0] block_words;
  reg asked = 1'b0;
  wire rd_done = reads && asked;
  reg open = 1'b0;
  always @(posedge clk) open <= open_wish;
  pcix_target dut (
      .clk(clk), .rst(rst), .base({place, 16'd0}), .window(32'hffff_0000), .open(open), .want_disconnect(1'b0),
      .frame_i(frame), .irdy_i(irdy), .cmd_i(cmd), .ad_i(ad), .par_i(par), .devsel_o(devsel), .trdy_o(trdy),
      .disconnect_o(disconnect), .ad_o(ad_o), .par_o(par_o), .perr_o(perr), .wr_valid(wr_valid),
      .wr_error(wr_error), .wr_split(wr_split), .wr_tag(wr_tag), .wr_addr(wr_addr), .wr_data(wr_data),
      .rd_valid(rd_valid), .rd_addr(rd_addr), .rd_done(rd_done), .rd_data(value), .block_valid(block_valid),
      .block_addr(block_addr), .block_words(block_words), .block_requester(block_requester), .block_tag(block_tag)
  );
  localparam [3:0] WRITE = pcix_pkg::CMD_WRITE, SPLIT = pcix_pkg::CMD_SPLIT, READ_DWORD = pcix_pkg::CMD_READ_DWORD;
  reg claimed_1 = 1'b0, answered = 1'b0, low;   // the sequence began in the lowest 4 KiB
  reg [3:0] command_1, command_2;
  reg [63:0] answer;
  // The bus one and two cycles ago.
  reg frame_1 = 1'b1, word_1 = 1'b0, word_2 = 1'b0, par_1, addressed = 1'b0, claimed = 1'b0;
  reg [3:0] cmd_1, cmd_2, command;
  reg [63:0] ad_1, ad_2;
  reg [31:0] next, next_1, next_2;
  wire word = claimed && irdy && (open || low);
  always @(posedge clk)
    if (!rst) begin
      frame_1 <= frame;
      cmd_1 <= cmd;
      cmd_2 <= cmd_1;
      ad_1 <= ad;
      ad_2 <= ad_1;
      par_1 <= par;
      addressed <= frame && !frame_1 && ad[31:16] == place && (cmd == WRITE || cmd == SPLIT || cmd == READ_DWORD);
      if (frame && !frame_1) begin
        command <= cmd;
        next <= ad[31:0];
        low <= ad[15:12] == 0;
      end else if (word) next <= next + 32'd8;
      claimed <= frame && (claimed || (addressed && ^{cmd_1, ad_1} == par && (open || low)));
      word_1 <= word;
      word_2 <= word_1;
      next_1 <= next;
      next_2 <= next_1;
      assert (wr_valid == word_2);
      if (word_2) begin
        assert (wr_addr == next_2 && wr_data == ad_2 && wr_split == (command_2 == SPLIT));
        assert (wr_error == (^{cmd_2, ad_2} != par_1));
      end
      assert (perr == (word_2 && ^{cmd_2, ad_2} != par_1));
      assert (!devsel || claimed_1 || claimed);
      assert (!block_valid && !disconnect);
      if (rd_valid) assert (claimed && !claimed_1 && command == READ_DWORD && rd_addr == next);
      if (rd_valid) asked <= 1'b1;
      else if (rd_done || !frame) asked <= 1'b0;
      if (trdy) assert (answered && ad_o == answer);
      answered <= rd_done && claimed && frame;
      answer <= value;
      claimed_1 <= claimed;
      command_1 <= command;
      command_2 <= command_1;
`ifdef REACH
      // The third word of a sequence into the bursts' area, with wrong parity.
      assert (!(wr_valid && wr_error && wr_addr[15:0] == 16'h9010 && ad_2 != 0));
`endif
    end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// Sequences of up to seventy words at any place of a page, and a slave that takes its time and refuses at will. A sequence's
// words are asked for once each, at their addresses, in transactions that cross no 4 KiB boundary; of a write, as many
// words are said to have arrived as its transactions that were not refused had, and never more than 64 are in between.
module fv_axi_master (
    input wire        clk,
    input wire        asks,
    input wire        read,
    input wire [6:0]  count,
    input wire [11:3] place,
    input wire        awready,
    input wire        wready,
    input wire        arready,
    input wire        answers,
    input wire        refuses
);
  reg rst = 1'b1;
  always @(posedge clk) rst <= 1'b0;
  wire pop, accept, done, error, awvalid, wvalid, wlast, arvalid, bready;
  wire [31:0] awaddr, araddr;
  wire [7:0] awlen, arlen;
  wire [2:0] awsize, arsize;
  wire [1:0] awburst, arburst;
  reg busy = 1'b0, is_read;
  reg [6:0] words;
  reg [31:0] next;          // address of the next transaction
  reg [6:0] left;           // words not yet in one
  reg [8:0] beats = 0;      // of the transaction in progress, still to come
  reg waits = 1'b0;         // for its answer
  reg [6:0] in_it;
  reg [7:0] between = 0;    // popped, not known
  reg [7:0] owed = 0;       // known to have arrived, not told
  reg refused = 1'b0;
  wire start = asks && !busy && !rst && count != 0 && count <= 7'd70;
  wire bvalid = waits && answers;
  axi_master dut (
      .clk(clk), .rst(rst), .start(start), .read(read), .addr({20'd0, place, 3'd0}), .words({3'd0, count}), .tag(4'd5),
      .data(64'd0), .pop(pop), .accept(accept), .done(done), .error(error), .awaddr(awaddr), .awlen(awlen),
      .awsize(awsize), .awburst(awburst), .awvalid(awvalid), .awready(awready), .wvalid(wvalid), .wlast(wlast),
      .wready(wready), .bid(4'd0), .bresp({refuses, 1'b0}), .bvalid(bvalid), .bready(bready), .araddr(araddr),
      .arlen(arlen), .arsize(arsize), .arburst(arburst), .arvalid(arvalid), .arready(arready), .rid(4'd0),
      .rdata(64'd0), .rresp(2'd0), .rlast(1'b0), .rvalid(1'b0)
  );
  wire [31:0] addr = is_read ? araddr : awaddr;
  wire [8:0] length = (is_read ? arlen : awlen) + 9'd1;
  wire taken = (awvalid && awready) || (arvalid && arready);
  wire ok = bvalid && bready && !refuses;
  always @(posedge clk) if (!rst) begin
    if (start) begin
      busy <= 1'b1;
      is_read <= read;
      next <= {20'd0, place, 3'd0};
      left <= count;
      refused <= 1'b0;
    end
    if (awvalid || arvalid) begin
      assert (busy && arvalid == is_read && awvalid == !is_read && beats == 0 && !waits && !refused);
      assert (addr == next && length <= left && {3'd0, addr[11:3]} + length <= 12'd512);
      assert (is_read ? arsize == 3 && arburst == 1 : awsize == 3 && awburst == 1);
    end
    if (taken) begin
      next <= next + {20'd0, length, 3'd0};
      left <= left - length[6:0];
      beats <= is_read ? 9'd0 : length;
      in_it <= length[6:0];
    end
    if (wvalid) assert (beats != 0 && wlast == (beats == 1));
    assert (pop == (wvalid && wready));
    if (pop) beats <= beats - 1'b1;
    if (pop && wlast) waits <= 1'b1;
    if (bvalid && bready) waits <= 1'b0;
    if (bvalid && bready && refuses) refused <= 1'b1;
    between <= between + pop - accept;
    owed <= owed + (ok ? {1'b0, in_it} : 8'd0) - accept;
    assert (between <= 64);
    if (accept) assert (owed != 0);
    if (done) begin
      assert (busy && owed == accept && !waits && beats == 0);
      assert (error == refused && (error || left == 0));
      busy <= 1'b0;
      between <= 0;
    end
  end
endmodule

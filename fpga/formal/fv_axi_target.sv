// SPDX-License-Identifier: MIT OR Apache-2.0
// Transactions of any kind and length, a master that takes its time, registers that do. A burst's words are handed out
// once each, at their addresses, up to the first that cannot be meant; every burst gets one response, which tells whether all
// were; a read gets as many words as it asks for, those of the registers, and what is offered stays until it is taken.
module fv_axi_target (
    input wire        clk,
    input wire        open,
    input wire        aw_wish,
    input wire        w_wish,
    input wire        bready,
    input wire        ar_wish,
    input wire        rready,
    input wire [3:0]  id,
    input wire [15:0] addr,
    input wire [7:0]  len,
    input wire [2:0]  size,
    input wire [1:0]  burst,
    input wire [63:0] data,
    input wire [7:0]  strb,
    input wire        reads
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  wire awready, wready, bvalid, arready, rlast, rvalid, wr_valid, rd_valid;
  wire [3:0] bid, rid;
  wire [1:0] bresp, rresp;
  wire [63:0] rdata, wr_data;
  wire [15:0] wr_addr;
  wire [11:0] rd_addr;
  reg writing = 1'b0, answering = 1'b0, bad, reading = 1'b0, read_bad, asked = 1'b0, known = 1'b0;
  reg [8:0] left, read_left;
  reg [15:0] at, read_at;
  reg [3:0] whose, read_whose;
  reg [63:0] value;
  wire wlast = left == 1;
  wire wvalid = w_wish && writing;
  wire rd_done = reads && asked;
  axi_target dut (
      .clk(clk), .rst(rst), .open(open), .awid(id), .awaddr(addr), .awlen(len), .awsize(size), .awburst(burst),
      .awvalid(aw_wish), .awready(awready), .wdata(data), .wstrb(strb), .wlast(wlast), .wvalid(wvalid),
      .wready(wready), .bid(bid), .bresp(bresp), .bvalid(bvalid), .bready(bready), .arid(id), .araddr(addr),
      .arlen(len), .arsize(size), .arburst(burst), .arvalid(ar_wish), .arready(arready), .rid(rid), .rdata(rdata),
      .rresp(rresp), .rlast(rlast), .rvalid(rvalid), .rready(rready), .wr_valid(wr_valid), .wr_addr(wr_addr),
      .wr_data(wr_data), .rd_valid(rd_valid), .rd_addr(rd_addr), .rd_done(rd_done), .rd_data(data)
  );
  wire odd = size != 3'd3 || (burst != 2'd1 && len != 0) || addr[2:0] != 0;
  wire spoils = (!open && at[15:12] != 0) || strb != 8'hff;
  reg due = 1'b0;
  reg [15:0] due_at;
  reg [63:0] due_data, held;
  reg offered = 1'b0;
  always @(posedge clk) if (!rst) begin
    // Writes.
    due <= 1'b0;
    if (aw_wish && awready) begin
      assert (!writing && !answering);
      writing <= 1'b1;
      left <= {1'b0, len} + 1'b1;
      at <= addr;
      bad <= odd;
      whose <= id;
    end
    if (wvalid && wready) begin
      left <= left - 1'b1;
      at <= at + 16'd8;
      bad <= bad || spoils;
      due <= !bad && !spoils;
      due_at <= at;
      due_data <= data;
      if (wlast) begin
        writing <= 1'b0;
        answering <= 1'b1;
      end
    end
    assert (wr_valid == due);
    if (due) assert (wr_addr == due_at && wr_data == due_data);
    assert (bvalid == answering);
    if (bvalid) assert (bid == whose && bresp == (bad ? 2'd2 : 2'd0));
    if (bvalid && bready) answering <= 1'b0;
    // Nobody waits for ever.
    assert (writing == wready && awready == (!writing && !answering));
    // Reads.
    if (ar_wish && arready) begin
      assert (!reading);
      reading <= 1'b1;
      read_left <= {1'b0, len} + 1'b1;
      read_at <= addr;
      read_bad <= odd || addr[15:12] != 0;
      read_whose <= id;
      known <= 1'b0;
    end
    if (rd_valid) begin
      assert (reading && !asked && !known && !read_bad && rd_addr == read_at[11:0] && read_at[15:12] == 0);
      asked <= 1'b1;
    end
    if (rd_done) begin
      asked <= 1'b0;
      known <= 1'b1;
      value <= data;
    end
    offered <= rvalid && !rready;
    if (offered) assert (rvalid && rdata == held);
    held <= rdata;
    if (rvalid) begin
      assert (reading && rid == read_whose && rlast == (read_left == 1));
      if (read_bad || read_at[15:12] != 0) assert (rresp == 2'd2);
      else assert (rresp == 2'd0 && known && rdata == value);
    end
    if (rvalid && rready) begin
      known <= 1'b0;
      read_at <= read_at + 16'd8;
      read_bad <= read_bad || read_at[15:12] != 0;
      read_left <= read_left - 1'b1;
      if (rlast) reading <= 1'b0;
    end
    assert (arready == !reading);
`ifdef REACH
    // A burst of four words of which the last spoils it, while a read of three has been answered.
    assert (!(bvalid && bad && at == 16'h0120 && rvalid && rlast && rresp == 0 && read_at == 16'h0110));
`endif
  end
endmodule

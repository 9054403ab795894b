// SPDX-License-Identifier: MIT OR Apache-2.0
// An AXI4 slave that hands out the words written to a BAR of 64 KiB and reads its registers, a transaction of each kind
// at a time. Bursts count up in words of 64 bits; anything else, and all but the lowest 4 KiB while `open` is low, gets
// SLVERR.
`default_nettype none

module axi_target #(
    parameter ID_W = 4
) (
    input  wire            clk,
    input  wire            rst,
    input  wire            open,
    input  wire [ID_W-1:0] awid,
    input  wire [15:0]     awaddr,
    input  wire [7:0]      awlen,
    input  wire [2:0]      awsize,
    input  wire [1:0]      awburst,
    input  wire            awvalid,
    output reg             awready,
    input  wire [63:0]     wdata,
    input  wire [7:0]      wstrb,
    input  wire            wlast,
    input  wire            wvalid,
    output reg             wready,
    output reg  [ID_W-1:0] bid,
    output wire [1:0]      bresp,
    output reg             bvalid,
    input  wire            bready,
    input  wire [ID_W-1:0] arid,
    input  wire [15:0]     araddr,
    input  wire [7:0]      arlen,
    input  wire [2:0]      arsize,
    input  wire [1:0]      arburst,
    input  wire            arvalid,
    output reg             arready,
    output reg  [ID_W-1:0] rid,
    output reg  [63:0]     rdata,
    output wire [1:0]      rresp,
    output wire            rlast,
    output reg             rvalid,
    input  wire            rready,
    // To the card.
    output reg             wr_valid,
    output reg  [15:0]     wr_addr,
    output reg  [63:0]     wr_data,
    output reg             rd_valid,   // pulse; rd_done comes some cycles later
    output wire [11:0]     rd_addr,
    input  wire            rd_done,
    input  wire [63:0]     rd_data
);
  localparam [2:0] WORDS = 3'd3;
  localparam [1:0] INCR = 2'd1, OKAY = 2'd0, SLVERR = 2'd2;

  reg [15:0] waddr;
  reg wr_bad;
  wire refused = !open && waddr[15:12] != 0;
  wire spoilt = wr_bad || refused || wstrb != 8'hff;
  assign bresp = wr_bad ? SLVERR : OKAY;
  always_ff @(posedge clk) begin
    wr_valid <= 1'b0;
    wr_addr <= waddr;
    wr_data <= wdata;
    if (awready && awvalid) begin
      awready <= 1'b0;
      wready <= 1'b1;
      bid <= awid;
      waddr <= awaddr;
      wr_bad <= awsize != WORDS || (awburst != INCR && awlen != 0) || awaddr[2:0] != 0;
    end
    if (wready && wvalid) begin
      wr_valid <= !spoilt;
      wr_bad <= spoilt;
      waddr <= waddr + 16'd8;
      if (wlast) begin
        wready <= 1'b0;
        bvalid <= 1'b1;
      end
    end
    if (bvalid && bready) begin
      bvalid <= 1'b0;
      awready <= 1'b1;
    end
    if (rst) begin
      awready <= 1'b1;
      wready <= 1'b0;
      bvalid <= 1'b0;
      wr_valid <= 1'b0;
    end
  end

  reg [15:0] raddr;
  reg [7:0] left;
  reg rd_bad;
  assign rd_addr = raddr[11:0];
  assign rresp = rd_bad ? SLVERR : OKAY;
  assign rlast = left == 0;
  reg asks;    // the next word is to be read
  always_ff @(posedge clk) begin
    rd_valid <= 1'b0;
    asks <= 1'b0;
    if (arready && arvalid) begin
      arready <= 1'b0;
      rid <= arid;
      raddr <= araddr;
      left <= arlen;
      rd_bad <= arsize != WORDS || (arburst != INCR && arlen != 0) || araddr[2:0] != 0 || araddr[15:12] != 0;
      asks <= 1'b1;
    end
    if (asks) begin
      if (raddr[15:12] != 0) rd_bad <= 1'b1;
      if (rd_bad || raddr[15:12] != 0) begin
        rdata <= 64'd0;
        rvalid <= 1'b1;
      end else rd_valid <= 1'b1;
    end
    if (rd_done && !arready && !rvalid) begin
      rdata <= rd_data;
      rvalid <= 1'b1;
    end
    if (rvalid && rready) begin
      rvalid <= 1'b0;
      raddr <= raddr + 16'd8;
      left <= left - 1'b1;
      if (rlast) arready <= 1'b1;
      else asks <= 1'b1;
    end
    if (rst) begin
      arready <= 1'b1;
      rvalid <= 1'b0;
      rd_valid <= 1'b0;
      asks <= 1'b0;
    end
  end
endmodule

`default_nettype wire

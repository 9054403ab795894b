// SPDX-License-Identifier: MIT OR Apache-2.0
// The card's sequences as AXI4 transactions: one write at a time, at most 32 words each, because the card remembers 64
// words that it does not know to have arrived; a read of up to 256 words, done when its address is taken. Its data come
// as responses, with the tag as ID. None crosses a 4 KiB boundary. The words of a write have arrived when it is answered.
`default_nettype none

module axi_master (
    input  wire        clk,
    input  wire        rst,
    input  wire        start,
    input  wire        read,
    input  wire [31:0] addr,
    input  wire [9:0]  words,         // 1 to 512
    input  wire [3:0]  tag,
    input  wire [63:0] data,          // first word falls through
    output wire        pop,
    output reg         accept,        // pulse: the oldest word popped and not yet accepted has arrived
    output reg         done,
    output reg         error,         // with done: not all words have arrived
    output wire        rsp_valid,
    output wire        rsp_error,
    output wire [3:0]  rsp_tag,
    output wire [63:0] rsp_data,
    output wire [3:0]  awid,
    output wire [31:0] awaddr,
    output wire [7:0]  awlen,
    output wire [2:0]  awsize,
    output wire [1:0]  awburst,
    output reg         awvalid,
    input  wire        awready,
    output wire [63:0] wdata,
    output wire [7:0]  wstrb,
    output wire        wlast,
    output reg         wvalid,
    input  wire        wready,
    input  wire [3:0]  bid,
    input  wire [1:0]  bresp,
    input  wire        bvalid,
    output wire        bready,
    output wire [3:0]  arid,
    output wire [31:0] araddr,
    output wire [7:0]  arlen,
    output wire [2:0]  arsize,
    output wire [1:0]  arburst,
    output reg         arvalid,
    input  wire        arready,
    input  wire [3:0]  rid,
    input  wire [63:0] rdata,
    input  wire [1:0]  rresp,
    input  wire        rlast,
    input  wire        rvalid,
    output wire        rready
);
  localparam [2:0] IDLE = 3'd0, SPLIT = 3'd1, ADDRESS = 3'd2, DATA = 3'd3, ANSWER = 3'd4, FINISH = 3'd5;
  reg [2:0] state;
  reg reads;
  reg [31:0] at;
  reg [9:0] left;       // words of the sequence not yet in a transaction
  reg [8:0] beats;      // of the transaction
  reg [8:0] beat;       // what is left of it
  reg [6:0] arrived;    // words to be told of
  wire answered = state == ANSWER && bvalid && !bresp[1];
  wire [9:0] to_boundary = 10'd512 - {1'b0, at[11:3]};
  wire [9:0] longest = reads ? 10'd256 : 10'd32;
  wire [9:0] most = (to_boundary < longest) ? to_boundary : longest;
  wire [9:0] next_beats = (left < most) ? left : most;
  wire [8:0] length = beats - 1'b1;
  wire unused = |{bid, bresp[0], rresp[0], rlast, length[8]};

  assign awid = 4'd0;
  assign awaddr = at;
  assign awlen = length[7:0];
  assign awsize = 3'd3;
  assign awburst = 2'd1;
  assign wdata = data;
  assign wstrb = 8'hff;
  assign wlast = beat == 9'd1;
  assign pop = wvalid && wready;
  assign bready = state == ANSWER;
  assign arid = tag;
  assign araddr = at;
  assign arlen = length[7:0];
  assign arsize = 3'd3;
  assign arburst = 2'd1;
  assign rready = 1'b1;
  assign rsp_valid = rvalid;
  assign rsp_error = rresp[1];
  assign rsp_tag = rid;
  assign rsp_data = rdata;

  always_ff @(posedge clk) begin
    accept <= arrived != 0;
    arrived <= arrived + (answered ? beats[6:0] : 7'd0) - {6'd0, arrived != 0};
    done <= 1'b0;
    case (state)
      IDLE:
        if (start) begin
          reads <= read;
          at <= addr;
          left <= words;
          state <= SPLIT;
        end
      SPLIT: begin
        beats <= next_beats[8:0];
        beat <= next_beats[8:0];
        left <= left - next_beats;
        awvalid <= !reads;
        arvalid <= reads;
        state <= ADDRESS;
      end
      ADDRESS:
        if ((awvalid && awready) || (arvalid && arready)) begin
          awvalid <= 1'b0;
          arvalid <= 1'b0;
          at <= at + {20'd0, beats, 3'd0};
          wvalid <= !reads;
          if (!reads) state <= DATA;
          else begin
            done <= left == 0;
            error <= 1'b0;
            state <= (left == 0) ? IDLE : SPLIT;
          end
        end
      DATA:
        if (wready) begin
          beat <= beat - 1'b1;
          if (wlast) begin
            wvalid <= 1'b0;
            state <= ANSWER;
          end
        end
      ANSWER:
        if (bvalid) begin
          error <= bresp[1];
          state <= (bresp[1] || left == 0) ? FINISH : SPLIT;
        end
      default:
        if (arrived == 0) begin
          done <= 1'b1;
          state <= IDLE;
        end
    endcase
    if (rst) begin
      state <= IDLE;
      awvalid <= 1'b0;
      wvalid <= 1'b0;
      arvalid <= 1'b0;
      arrived <= 0;
      accept <= 1'b0;
      done <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk) if (!rst) assert (!(start && state != IDLE));
`endif
endmodule

`default_nettype wire

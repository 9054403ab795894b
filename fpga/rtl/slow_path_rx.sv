// SPDX-License-Identifier: MIT OR Apache-2.0
// DMA channel ii: frames for the host, from the slow path's two input FIFOs into two receive rings, the high class
// first. A frame goes to the buffer whose turn it is, then its descriptor word {phase, class, length} to the
// descriptor ring; the phase bit is one in the first lap and changes with every lap, so the host needs to clear
// nothing. A class whose ring is full stays in its FIFO. A frame that host memory does not take is lost, and the next one
// gets its buffer.
`default_nettype none

module slow_path_rx (
    input  wire        clk,
    input  wire        rst,
    input  wire        enable,
    // Rings: low class, then high class.
    input  wire [63:0] desc_base,
    input  wire [63:0] buffer_base,
    input  wire [31:0] tail,          // buffers given, modulo 2^16
    // Input FIFOs (queue_bank with one pair).
    input  wire [15:0] packets,
    output reg         len_queue,
    input  wire [10:0] len_bytes,
    output reg         rd_load,
    output wire        rd_queue,
    output wire        rd_en,
    input  wire [63:0] rd_data,
    output reg         rd_free,
    output wire [11:0] rd_free_words,
    // DMA.
    output wire        dma_valid,
    output wire [31:0] dma_addr,
    output wire [9:0]  dma_words,
    output wire [63:0] dma_data,
    input  wire        dma_pop,
    input  wire        dma_done,
    input  wire        dma_error,
    output reg         delivered,     // pulse: a descriptor was written
    output reg         lost           // pulse: the frame or its descriptor could not be written
);
  localparam [2:0] IDLE = 3'd0, LENGTH = 3'd1, READ = 3'd2, WAIT = 3'd3, DESCRIPTOR = 3'd4;
  reg [2:0] state;
  reg [15:0] head_low, head_high;
  reg [10:0] length;
  reg [7:0] left;
  reg [1:0] settle;
  reg data_valid;
  wire ready_high = packets[15:8] != 0 && head_high != tail[31:16];
  wire ready_low = packets[7:0] != 0 && head_low != tail[15:0];
  // The lap's phase and the place in the ring.
  wire [8:0] head = len_queue ? head_high[8:0] : head_low[8:0];
  wire [7:0] data_words = length[10:3] + {7'd0, length[2:0] != 0};

  assign rd_queue = len_queue;
  assign rd_free_words = {4'd0, data_words} + 12'd1;
  wire [4:0] level;
  wire fifo_valid, fifo_full;
  reg sinks;   // the frame failed: its words go nowhere
  wire [63:0] dma_data_frame;
  assign rd_en = state == READ && level <= 5'd12;
  sync_fifo #(.W(64), .AW(4)) out_fifo (
      .clk(clk), .rst(rst), .wr_en(data_valid), .wr_data(rd_data), .full(fifo_full),
      .rd_en((dma_pop && state != DESCRIPTOR) || (sinks && fifo_valid)), .rd_data(dma_data_frame), .rd_valid(fifo_valid), .level(level)
  );
  wire unused = fifo_full;
  wire [63:0] descriptor = {!head[8], len_queue, 51'd0, length};
  assign dma_data = (state == DESCRIPTOR) ? descriptor : dma_data_frame;
  assign dma_words = (state == DESCRIPTOR) ? 10'd1 : {2'd0, data_words};
  wire [12:0] base = len_queue ? buffer_base[63:51] : buffer_base[31:19];
  wire [20:0] ring = len_queue ? desc_base[63:43] : desc_base[31:11];
  wire unused_bases = |{desc_base, buffer_base};
  assign dma_addr = (state == DESCRIPTOR) ? {ring, head[7:0], 3'd0} : {base, head[7:0], 11'd0};
  assign dma_valid = state == DESCRIPTOR || (!sinks && ((state == READ && level >= 5'd8) || state == WAIT));

  always_ff @(posedge clk) begin
    rd_load <= 1'b0;
    rd_free <= 1'b0;
    delivered <= 1'b0;
    lost <= 1'b0;
    if (dma_done && dma_error && state != DESCRIPTOR) sinks <= 1'b1;
    data_valid <= rd_en;
    case (state)
      IDLE: begin
        settle <= 0;
        sinks <= 1'b0;
        if (enable && (ready_high || ready_low) && !rd_free) begin
          len_queue <= ready_high;
          rd_load <= 1'b1;
          state <= LENGTH;
        end
      end
      LENGTH: begin
        settle <= settle + 1'b1;
        length <= len_bytes;
        left <= len_bytes[10:3] + {7'd0, len_bytes[2:0] != 0};
        if (settle == 2'd3) state <= READ;
      end
      READ:
        if (rd_en) begin
          left <= left - 1'b1;
          if (left == 8'd1) begin
            rd_free <= 1'b1;
            state <= WAIT;
          end
        end
      WAIT:
        if (sinks) begin
          if (!data_valid && level == 0) begin
            lost <= 1'b1;
            state <= IDLE;
          end
        end else if (dma_done && !dma_error) state <= DESCRIPTOR;
      default:
        if (dma_done) begin
          if (!dma_error) begin
            if (len_queue) head_high <= head_high + 1'b1;
            else head_low <= head_low + 1'b1;
          end
          delivered <= !dma_error;
          lost <= dma_error;
          state <= IDLE;
        end
    endcase
    if (rst) begin
      state <= IDLE;
      head_low <= 0;
      head_high <= 0;
      data_valid <= 1'b0;
      sinks <= 1'b0;
      delivered <= 1'b0;
      lost <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk)
    if (!rst) begin
      assert (!(dma_pop && state != DESCRIPTOR && !fifo_valid));
      assert (!(dma_done && !dma_error && state == READ));
    end
`endif
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// Feeds the transmit MAC: at every packet boundary the slow path's FIFO first, then the fast path's. Only whole
// packets are begun and words are read as fast as the MAC's FIFO takes them, so the MAC cannot run dry in a frame.
`default_nettype none

module output_scheduler (
    input  wire        clk,
    input  wire        rst,
    input  wire        slow_packet,
    output wire        slow_rd_en,
    input  wire [63:0] slow_data,
    output wire        slow_done,
    input  wire        fast_packet,
    output wire        fast_rd_en,
    input  wire [63:0] fast_data,
    output wire        fast_done,
    output wire [63:0] m_axis_tdata,
    output wire [7:0]  m_axis_tkeep,
    output wire        m_axis_tvalid,
    input  wire        m_axis_tready,
    output wire        m_axis_tlast
);
  localparam [1:0] IDLE = 2'd0, HEADER = 2'd1, DATA = 2'd2, DONE = 2'd3;
  reg [1:0] state;
  reg from_slow;
  // Words and bytes as the header's length has them: nothing is added behind the memory's slow output. The last word
  // is the part of a word at word 0, or without a part the whole one at word 1.
  reg [7:0] left;
  reg [2:0] tail_bytes;
  wire last = left == {7'd0, tail_bytes == 0};
  wire [63:0] head = from_slow ? slow_data : fast_data;
  wire start = state == IDLE && (slow_packet || fast_packet);
  wire [2:0] level;
  wire full;
  // A word is read in a cycle and written in the next one.
  reg read, read_last;
  wire room = {1'b0, level} + {3'd0, read} < 4'd4;
  wire step = state == DATA && room;
  assign slow_rd_en = (start && slow_packet) || (step && from_slow);
  assign fast_rd_en = (start && !slow_packet) || (step && !from_slow);
  assign slow_done = state == DONE && from_slow;
  assign fast_done = state == DONE && !from_slow;

  wire [2:0] tail_last = tail_bytes - 1'b1;
  reg [2:0] read_bytes;
  wire [67:0] out;
  sync_fifo #(.W(68), .AW(2)) words (
      .clk(clk), .rst(rst), .wr_en(read), .wr_data({read_bytes, read_last, head}), .full(full),
      .rd_en(m_axis_tvalid && m_axis_tready), .rd_data(out), .rd_valid(m_axis_tvalid), .level(level)
  );
  assign m_axis_tdata = out[63:0];
  assign m_axis_tlast = out[64];
  assign m_axis_tkeep = 8'hff >> (3'd7 - out[67:65]);
  wire unused = full;

  always_ff @(posedge clk) begin
    read <= step;
    read_last <= last;
    read_bytes <= last ? tail_last : 3'd7;
    case (state)
      IDLE:
        if (start) begin
          from_slow <= slow_packet;
          state <= HEADER;
        end
      HEADER: begin
        left <= head[10:3];
        tail_bytes <= head[2:0];
        state <= DATA;
      end
      DATA:
        if (step) begin
          left <= left - 1'b1;
          if (last) state <= DONE;
        end
      default: state <= IDLE;
    endcase
    if (rst) begin
      state <= IDLE;
      read <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  // The fast path begins only when the slow path has nothing; what has begun is not interrupted.
  always @(posedge clk)
    if (!rst) begin
      assert (!(state == IDLE && fast_rd_en && slow_packet));
      assert (!(slow_rd_en && fast_rd_en));
      assert (state == IDLE || !(from_slow ? fast_rd_en : slow_rd_en));
    end
`endif
endmodule

`default_nettype wire

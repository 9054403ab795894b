// SPDX-License-Identifier: MIT OR Apache-2.0
// Input FIFOs: PAIRS destinations times two classes in one memory, CAP_WORDS words each. A frame is stored whole or
// not at all. Space is counted as it will be in the output FIFO: the data words and one for the packet's header;
// the header is not stored here, the lengths have a small memory of their own. A pair can be emptied at once, while
// nobody reads from it.
//
// Queue q = {pair, class}; class 1 is the high one.
`default_nettype none

module queue_bank #(
    parameter PAIRS = 3,
    parameter CAP_WORDS = 1920,             // 15,360 bytes
    parameter AW = $clog2(CAP_WORDS),       // log2 of the memory's words per queue
    parameter Q = 2 * PAIRS,
    parameter QW = $clog2(Q)
) (
    input  wire            clk,
    input  wire            rst,
    // Frames; s_axis_tuser with the last word: throw the frame away. At least two idle cycles between frames.
    input  wire [63:0]     s_axis_tdata,
    input  wire [7:0]      s_axis_tkeep,
    input  wire            s_axis_tvalid,
    input  wire            s_axis_tlast,
    input  wire            s_axis_tuser,
    input  wire [QW-1:0]   s_axis_tqueue,
    output reg             dropped,         // pulse: a good frame found no room
    output reg  [QW-1:0]   dropped_queue,
    input  wire [PAIRS-1:0] flush,          // the pair is emptied
    output reg             flushed,         // pulse: a queue that was not empty has been emptied
    output reg  [7:0]      flushed_packets,
    // Occupancy.
    output wire [12*Q-1:0] used_words,
    output wire [8*Q-1:0]  packets,
    // Lengths: of the packet at offset len_offset behind the head of len_queue, two cycles later, in bytes.
    input  wire [QW-1:0]   len_queue,
    input  wire [7:0]      len_offset,
    output wire [10:0]     len_bytes,
    // Data: rd_load selects a queue; each rd_en gives the next word a cycle later; rd_free, not before the cycle
    // after the packet's last rd_en, removes the packet, rd_free_words long with its header.
    input  wire            rd_load,
    input  wire [QW-1:0]   rd_queue,
    input  wire            rd_en,
    output wire [63:0]     rd_data,
    input  wire            rd_free,
    input  wire [11:0]     rd_free_words
);
  localparam [QW-1:0] LAST = QW'(Q - 1);
  reg [AW-1:0] wr_ptr[0:Q-1];
  reg [AW-1:0] rd_ptr[0:Q-1];
  reg [7:0] len_wr[0:Q-1];
  reg [7:0] len_rd[0:Q-1];
  reg [11:0] used[0:Q-1];
  reg [7:0] count[0:Q-1];
  reg [QW-1:0] turn;    // the queue that may be emptied in this cycle
  reg [Q-1:0] empties;
  integer e;
  always_comb for (e = 0; e < Q; e = e + 1) empties[e] = turn == e[QW-1:0] && flush[e/2] && count[e] != 0;

  wire [2:0] last_byte;
  keep_count keeps (.tkeep(s_axis_tkeep), .last(last_byte));

  // First stage: the word, and the state of its queue when it is the first of a frame.
  reg first;
  reg s1_valid, s1_last, s1_discard;
  reg [63:0] s1_data;
  reg [2:0] s1_bytes;
  reg [QW-1:0] s1_queue;
  reg [AW-1:0] s1_ptr;
  reg [11:0] fill;       // words in the queue with this frame's header and words so far
  reg [7:0] words;       // data words before this one
  wire over = fill >= CAP_WORDS[11:0];
  reg overflowed;
  wire fits = !over && !overflowed;

  // Second stage: the memory is written, and with a good frame's last word the queue grows.
  reg s2_write, store;
  reg [63:0] s2_data;
  reg [QW-1:0] s2_queue;
  reg [AW-1:0] s2_ptr;
  reg [10:0] frame_bytes;
  reg [11:0] frame_words;

  always_ff @(posedge clk) begin
    s1_valid <= s_axis_tvalid && !rst;
    s1_last <= s_axis_tlast;
    s1_discard <= s_axis_tuser;
    s1_data <= s_axis_tdata;
    s1_bytes <= last_byte;
    dropped <= s1_valid && s1_last && !s1_discard && !fits && !rst;
    dropped_queue <= s1_queue;
    if (s_axis_tvalid && first) begin
      s1_queue <= s_axis_tqueue;
      s1_ptr <= wr_ptr[s_axis_tqueue];
      fill <= used[s_axis_tqueue] + 1'b1;
      words <= 0;
      overflowed <= 1'b0;
    end else if (s1_valid) begin
      s1_ptr <= s1_ptr + 1'b1;
      fill <= fill + {11'd0, !over};
      words <= words + 1'b1;
      overflowed <= overflowed || over;
    end
    s2_write <= s1_valid && fits && !rst;
    store <= s1_valid && s1_last && !s1_discard && fits && !rst;
    s2_data <= s1_data;
    s2_queue <= s1_queue;
    s2_ptr <= s1_ptr;
    frame_bytes <= {words, 3'd0} + {8'd0, s1_bytes} + 11'd1;
    frame_words <= {4'd0, words} + 12'd2;
    if (rst) first <= 1'b1;
    else if (s_axis_tvalid) first <= s_axis_tlast;
  end

  // Reading.
  reg [QW-1:0] cur_queue;
  reg [AW-1:0] cur_ptr;
  reg [QW+7:0] len_addr;
  always_ff @(posedge clk) begin
    len_addr <= {len_queue, len_rd[len_queue] + len_offset};
    if (rd_load) begin
      cur_queue <= rd_queue;
      cur_ptr <= rd_ptr[rd_queue];
    end else if (rd_en) cur_ptr <= cur_ptr + 1'b1;
  end

  integer i;
  always_ff @(posedge clk) begin
    turn <= (turn == LAST) ? {QW{1'b0}} : turn + 1'b1;
    flushed <= empties != 0;
    flushed_packets <= count[turn];
    if (store) begin
      wr_ptr[s2_queue] <= s2_ptr + 1'b1;
      len_wr[s2_queue] <= len_wr[s2_queue] + 1'b1;
    end
    if (rd_free) begin
      rd_ptr[cur_queue] <= cur_ptr;
      len_rd[cur_queue] <= len_rd[cur_queue] + 1'b1;
    end
    for (i = 0; i < Q; i = i + 1) begin
      if (store && s2_queue == i[QW-1:0]) begin
        if (rd_free && cur_queue == i[QW-1:0]) used[i] <= used[i] + frame_words - rd_free_words;
        else begin
          used[i] <= used[i] + frame_words;
          count[i] <= count[i] + 1'b1;
        end
      end else if (rd_free && cur_queue == i[QW-1:0]) begin
        used[i] <= used[i] - rd_free_words;
        count[i] <= count[i] - 1'b1;
      end
      if (empties[i]) begin
        // What is being stored in this cycle stays.
        rd_ptr[i] <= wr_ptr[i];
        len_rd[i] <= len_wr[i];
        used[i] <= (store && s2_queue == i[QW-1:0]) ? frame_words : 12'd0;
        count[i] <= (store && s2_queue == i[QW-1:0]) ? 8'd1 : 8'd0;
      end
      if (rst) begin
        wr_ptr[i] <= 0;
        rd_ptr[i] <= 0;
        len_wr[i] <= 0;
        len_rd[i] <= 0;
        used[i] <= 0;
        count[i] <= 0;
      end
    end
    if (rst) begin
      turn <= 0;
      flushed <= 1'b0;
    end
  end

  genvar g;
  generate
    for (g = 0; g < Q; g = g + 1) begin : occupancy
      assign used_words[12*g+:12] = used[g];
      assign packets[8*g+:8] = count[g];
    end
  endgenerate

  ram_1r1w #(.W(64), .DEPTH(Q << AW), .AW(QW + AW)) data_ram (
      .clk(clk), .wr_en(s2_write), .wr_addr({s2_queue, s2_ptr}), .wr_data(s2_data),
      .rd_addr({cur_queue, cur_ptr}), .rd_data(rd_data)
  );
  ram_1r1w #(.W(11), .DEPTH(Q << 8), .AW(QW + 8)) length_ram (
      .clk(clk), .wr_en(store), .wr_addr({s2_queue, len_wr[s2_queue]}), .wr_data(frame_bytes),
      .rd_addr(len_addr), .rd_data(len_bytes)
  );

`ifdef ASSERTIONS
  integer k;
  always @(posedge clk)
    if (!rst) begin
      for (k = 0; k < Q; k = k + 1) begin
        assert (used[k] <= CAP_WORDS);
        assert ((used[k] == 0) == (count[k] == 0));
      end
      assert (!(s_axis_tvalid && first && (s1_valid || s2_write || store)));
      assert (!(rd_free && (count[cur_queue] == 0 || empties[cur_queue])));
    end
`endif
endmodule

`default_nettype wire

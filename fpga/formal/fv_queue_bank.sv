// SPDX-License-Identifier: MIT OR Apache-2.0
// Input FIFOs of two classes, four words each, with any frames, a reader that keeps to the rules, and any emptying while
// it does not read. Every good frame
// is stored whole or dropped whole, and dropped only if it does not fit; occupancy and packet count are exact and
// never above the capacity; frames, words and lengths come out as they went in, in order by queue.
//
// The queues do not look at the data, so that the frame's number and the word's place in it stand for all data.
module fv_queue_bank (
    input wire       clk,
    input wire       beat,
    input wire       last,
    input wire       discard,
    input wire       empty,
    input wire       queue,
    input wire [2:0] bytes,
    input wire       load,
    input wire       load_queue,
    input wire       read,
    input wire       remove,
    input wire       len_queue,
    input wire [1:0] len_offset
);
  localparam CAP = 4;
  reg rst = 1'b1;
  always @(posedge clk) rst <= 1'b0;

  // Frames of up to five words, two idle cycles at least between them.
  reg inside = 1'b0, frame_queue;
  reg [1:0] ended = 0;
  reg [3:0] number = 0;
  reg [2:0] index = 0;
  reg [11:0] used_at_start;
  wire tvalid = beat && !rst && ended == 0;
  wire tlast = last || index == 3'd4;
  wire tqueue = inside ? frame_queue : queue;
  wire [7:0] tag = {number, index, tlast};

  wire dropped, dropped_queue;
  wire [23:0] used;
  wire [15:0] packets;
  wire [10:0] len_bytes;
  wire [63:0] rd_data;
  wire rd_load, rd_queue, rd_en, rd_free;
  wire [2:0] head_words;
  wire flush, flushed;
  wire [7:0] flushed_packets;
  queue_bank #(.PAIRS(1), .CAP_WORDS(CAP), .AW(2)) dut (
      .clk(clk), .rst(rst), .s_axis_tdata({56'd0, tag}), .s_axis_tkeep(tlast ? 8'hff >> (3'd7 - bytes) : 8'hff),
      .s_axis_tvalid(tvalid), .s_axis_tlast(tlast), .s_axis_tuser(discard), .s_axis_tqueue(tqueue),
      .dropped(dropped), .dropped_queue(dropped_queue), .flush(flush), .flushed(flushed),
      .flushed_packets(flushed_packets), .used_words(used), .packets(packets), .len_queue(len_queue),
      .len_offset({6'd0, len_offset}), .len_bytes(len_bytes), .rd_load(rd_load), .rd_queue(rd_queue), .rd_en(rd_en),
      .rd_data(rd_data), .rd_free(rd_free), .rd_free_words({9'd0, head_words} + 12'd1)
  );
  (* hierconn *) wire \dut.data_ram.known ;
  (* hierconn *) wire \dut.length_ram.known ;
  (* hierconn *) wire \dut.turn ;
  reg emptied;

  // The frame that ended last, until it is known to be stored or dropped: {number, words, bytes of the last less one}.
  reg open = 1'b0, open_queue, open_discard;
  reg [9:0] open_frame;
  reg [11:0] open_used;

  // What is stored, by queue, oldest first; at most two frames of a word and its header; the third place is for one that should not be there.
  reg [9:0] list[0:1][0:2];
  reg [9:0] now[0:1][0:2];
  reg [1:0] count[0:1];
  reg [1:0] count_now[0:1];
  reg freed = 1'b0, freed_queue;
  reg [1:0] pushed;
  integer q;
  always @* begin
    for (q = 0; q < 2; q = q + 1) begin
      now[q][0] = list[q][0];
      now[q][1] = list[q][1];
      now[q][2] = list[q][2];
      count_now[q] = count[q];
      if (freed && freed_queue == q) begin
        now[q][0] = list[q][1];
        now[q][1] = list[q][2];
        count_now[q] = count[q] - 1'b1;
      end
      if (flushed && emptied == q) count_now[q] = 0;
      pushed[q] = packets[8*q+:8] != {6'd0, count_now[q]};
      if (pushed[q]) begin
        now[q][count_now[q]] = open_frame;
        count_now[q] = count_now[q] + 1'b1;
      end
    end
  end
  wire [1:0] counts[0:1];
  assign counts[0] = count_now[0];
  assign counts[1] = count_now[1];

  // The reader: load, read all words of the head, remove it; another queue may be loaded while it is removed.
  reg busy = 1'b0, cur;
  reg [2:0] taken = 0;
  reg was_read = 1'b0, was_flush = 1'b0;
  reg [7:0] expected;
  wire [9:0] head = now[cur][0];
  assign head_words = head[5:3];
  wire all_read = busy && taken == head_words;
  assign rd_free = all_read && remove;
  assign rd_en = busy && taken != head_words && read;
  assign rd_queue = load_queue;
  assign flush = empty && !rst && !busy && !rd_load;
  assign rd_load = load && !rst && (busy ? rd_free && load_queue != cur : 1'b1)
      && !(freed && freed_queue == load_queue);

  // A length is asked for.
  reg [1:0] asked = 0;
  reg [10:0] asked_0, asked_1;
  wire [9:0] looked_at = now[len_queue][len_offset];

  integer k;
  reg [11:0] sum;
  always @(posedge clk) begin
    ended <= {ended[0], tvalid && tlast};
    open <= open && !open_discard && pushed == 0 && !dropped;
    if (tvalid) begin
      inside <= !tlast;
      index <= tlast ? 3'd0 : index + 1'b1;
      if (!inside) begin
        frame_queue <= queue;
        used_at_start <= queue ? used[23:12] : used[11:0];
      end
      if (tlast) begin
        number <= number + 1'b1;
        open <= 1'b1;
        open_queue <= tqueue;
        open_discard <= discard;
        open_used <= inside ? used_at_start : queue ? used[23:12] : used[11:0];
        open_frame <= {number, index + 3'd1, bytes};
      end
    end
    for (k = 0; k < 2; k = k + 1) begin
      list[k][0] <= now[k][0];
      list[k][1] <= now[k][1];
      list[k][2] <= now[k][2];
      count[k] <= rst ? 2'd0 : count_now[k];
    end
    freed <= rd_free;
    emptied <= \dut.turn ;
    was_flush <= flush;
    freed_queue <= cur;
    was_read <= rd_en;
    expected <= {head[9:6], taken, taken + 3'd1 == head_words};
    if (rd_en) taken <= taken + 1'b1;
    if (rd_free) begin
      taken <= 0;
      // Goes on with the next packet of the queue, or stops.
      busy <= counts[cur] > 1;
    end
    if (rd_load) begin
      busy <= counts[rd_queue] != 0;
      cur <= rd_queue;
      taken <= 0;
    end
    asked <= {asked[0], !rst && len_offset < counts[len_queue]};
    asked_0 <= {5'd0, looked_at[5:3], looked_at[2:0]} - 11'd7;
    asked_1 <= asked_0;

    if (!rst) begin
      // Emptied only when that is wanted, and told how much that was.
      if (flushed) assert (was_flush && count[emptied] != 0 && flushed_packets == {6'd0, count[emptied]});
      // Stored or dropped, one of the two, and not without need.
      assert (pushed != 2'b11 && (pushed == 0 || !dropped));
      if (pushed != 0) assert (open && !open_discard && pushed[open_queue]);
      if (dropped) begin
        assert (open && !open_discard && dropped_queue == open_queue);
        assert (open_used + {9'd0, open_frame[5:3]} + 12'd1 > CAP);
      end
      if (tvalid && tlast) assert (!open || open_discard || pushed != 0 || dropped);
      // Occupancy.
      for (k = 0; k < 2; k = k + 1) begin
        sum = 0;
        if (count_now[k] > 0) sum = sum + {9'd0, now[k][0][5:3]} + 12'd1;
        if (count_now[k] > 1) sum = sum + {9'd0, now[k][1][5:3]} + 12'd1;
        if (count_now[k] > 2) sum = sum + {9'd0, now[k][2][5:3]} + 12'd1;
        assert (used[12*k+:12] == sum);
        assert (sum <= CAP);
        assert (packets[8*k+:8] == {6'd0, count_now[k]});
      end
      // Order, whole frames, lengths.
      if (was_read && \dut.data_ram.known ) assert (rd_data == {56'd0, expected});
      if (asked[1] && \dut.length_ram.known ) assert (len_bytes == asked_1);
    end
  end
endmodule

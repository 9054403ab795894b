// SPDX-License-Identifier: MIT OR Apache-2.0
// The burst scheduler with two peers, input FIFOs of up to two packets a class that arrive at any time, any grants,
// and a DMA channel that takes words when it likes, tells later which have arrived, and may fail. Every grant is answered
// with one burst, or with a failure that tells how many packets have not arrived whole; its words keep within
// the grant in each class; its header's counts are those of the packets that follow, and no packet is left out that
// was there and fits; packets are whole, in order, the high class first; one trailing REQ ends it and tells what is
// left; the token returns if and only if that is nothing. The FIFOs are read by their rules.
module fv_burst_scheduler (
    input wire        clk,
    input wire        peer,
    input wire [4:0]  high,
    input wire [4:0]  low,
    input wire [3:0]  arrives,
    input wire        begins,
    input wire        takes,
    input wire        accepts,
    input wire        ends,
    input wire        fails
);
  // Two cycles: what reset does not clear itself follows from what it clears.
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;

  // Packets of each queue, 17 to 32 bytes, because the length of the next one is looked up while one is read and takes
  // some cycles; no Ethernet frame has less than 60. `there` have arrived, some at once, `gone` have been removed.
  (* anyconst *) reg [3:0] past_17_0, past_17_1, past_17_2, past_17_3, past_17_4, past_17_5, past_17_6, past_17_7;
  wire [31:0] past_17 = {past_17_7, past_17_6, past_17_5, past_17_4, past_17_3, past_17_2, past_17_1, past_17_0};
  reg [1:0] there[0:3];
  reg [1:0] gone[0:3];
  reg [11:0] cost[0:3][0:1];  // words with the header
  reg [5:0] size[0:3][0:1];   // bytes
  reg [47:0] used;
  reg [31:0] packets;
  (* anyconst *) reg [7:0] at_start;
  integer q, n;
  always @*
    for (q = 0; q < 4; q = q + 1) begin
      for (n = 0; n < 2; n = n + 1) begin
        size[q][n] = {2'd0, past_17[4*(2*q+n)+:4]} + 6'd17;
        cost[q][n] = past_17[4*(2*q+n)+3] ? 12'd5 : 12'd4;
      end
      used[12*q+:12] = 0;
      for (n = 0; n < 2; n = n + 1) if (n < there[q] && n >= gone[q]) used[12*q+:12] = used[12*q+:12] + cost[q][n];
      packets[8*q+:8] = {6'd0, there[q]} - {6'd0, gone[q]};
    end

  // Grants: as soon as a peer is owed none.
  reg [1:0] owed = 0;
  reg [11:0] grant_high[0:1];
  reg [11:0] grant_low[0:1];
  reg [23:0] used_then[0:1];
  reg [3:0] fit_high[0:1];  // packets that fit when the grant comes
  reg [3:0] fit_low[0:1];
  wire res_valid = !rst && !owed[peer];

  wire [1:0] len_queue, rd_queue;
  wire [7:0] len_offset;
  wire rd_load, rd_en, rd_free, dma_valid, dma_later, burst_peer, token_return, token_peer, sent, sent_empty;
  wire failed, asks, busy;
  wire [7:0] failed_packets;
  wire [11:0] rd_free_words;
  wire [9:0] dma_words;
  wire [63:0] dma_data;
  reg [10:0] len_0, len_bytes;
  reg [7:0] rd_tag;
  reg dma_busy = 1'b0;
  reg [9:0] dma_left = 0;
  wire dma_pop = dma_busy && dma_left != 0 && takes;
  reg [4:0] flying = 0;   // words taken that have not arrived
  wire dma_accept = dma_busy && flying != 0 && accepts;
  wire dma_error = dma_busy && fails && (dma_left != 0 || flying != 0) && !dma_accept && !dma_pop;
  wire dma_done = (dma_busy && dma_left == 0 && flying == 0 && ends) || dma_error;
  // Which of the words taken end a packet, by their number in the burst.
  reg [31:0] ends_packet;
  reg [4:0] taken_words = 0, arrived_words = 0;
  reg [7:0] arrived = 0;
  reg broken = 1'b0, headed = 1'b0;
  wire [3:0] dest = {3'd1, burst_peer};
  burst_scheduler #(.PEERS(2)) dut (
      .clk(clk), .rst(rst), .own_id(4'd5), .ready(2'b11), .clear(2'b00), .res_valid(res_valid), .res_peer(peer), .res_high({7'd0, high}), .res_low({7'd0, low}),
      .used_words(used), .packets(packets), .len_queue(len_queue), .len_offset(len_offset), .len_bytes(len_bytes),
      .rd_load(rd_load), .rd_queue(rd_queue), .rd_en(rd_en), .rd_data({56'd0, rd_tag}), .rd_free(rd_free),
      .rd_free_words(rd_free_words), .dma_valid(dma_valid), .burst_peer(burst_peer), .burst_dest(dest),
      .dma_later(dma_later), .dma_words(dma_words), .dma_data(dma_data), .dma_pop(dma_pop), .dma_accept(dma_accept),
      .dma_done(dma_done), .dma_error(dma_error), .asks(asks), .busy(busy), .failed(failed),
      .failed_packets(failed_packets), .token_return(token_return), .token_peer(token_peer), .sent(sent), .sent_empty(sent_empty)
  );

  // How many of a queue's packets fit, at most two.
  function [1:0] fit(input [11:0] room, input [1:0] from, input [1:0] to, input [11:0] first, input [11:0] second);
    reg [11:0] one;
    begin
      one = (from == 0) ? first : second;
      fit = (from == to || one > room) ? 2'd0 : (to - from == 2'd2 && first + second <= room) ? 2'd2 : 2'd1;
    end
  endfunction

  // The scan's answer (length_scan_contract).
  (* hierconn *) wire [7:0] \dut.scan.right_count , \dut.scan.packets ;
  (* hierconn *) wire [11:0] \dut.scan.right_words , \dut.scan.grant_words ;
  wire [1:0] scan_from = gone[len_queue];
  wire [11:0] scan_0 = cost[len_queue][0], scan_1 = cost[len_queue][1];
  wire [1:0] scan_fit = fit(\dut.scan.grant_words , scan_from, scan_from + \dut.scan.packets [1:0], scan_0, scan_1);
  assign \dut.scan.right_count = {6'd0, scan_fit};
  assign \dut.scan.right_words = (scan_fit == 2) ? scan_0 + scan_1 : (scan_fit == 0) ? 12'd0 : scan_from[0] ? scan_1 : scan_0;

  // The FIFOs' read port: queue loaded, packet and word that come next.
  reg [1:0] cur;
  reg loaded = 1'b0;
  reg [1:0] packet;
  reg [2:0] word;
  wire [1:0] at = gone[len_queue] + len_offset[1:0];

  // The burst as the bus sees it.
  localparam [1:0] HEAD = 2'd0, PKT = 2'd1, DATA = 2'd2, TAIL = 2'd3;
  reg [1:0] state = HEAD;
  reg unsent = 1'b0, null_tail;  // the last word was taken, `sent` has not come
  reg [7:0] n_high, n_low, seen_high, seen_low;
  reg [11:0] words, words_high, words_low;
  reg [1:0] first_high, first_low;  // removed before this burst
  reg [2:0] word_of;
  wire [3:0] kind = dma_data[63:60];
  wire class_now = seen_high != n_high;
  wire [1:0] queue_now = {burst_peer, class_now};
  wire [1:0] packet_now = class_now ? first_high + seen_high[1:0] : first_low + seen_low[1:0];
  wire packet_index = packet_now[0];
  wire [11:0] cost_now = cost[queue_now][packet_index];
  wire last_word = {9'd0, word_of} + 12'd2 == cost_now;
  wire more = seen_high + seen_low + 8'd1 != n_high + n_low;

  integer k;
  always @(posedge clk) begin
    for (k = 0; k < 4; k = k + 1) begin
      if (rst) begin
        there[k] <= at_start[2*k+1] ? 2'd2 : at_start[2*k+:2];
        gone[k] <= 0;
      end else if (arrives[k] && there[k] != 2) there[k] <= there[k] + 1'b1;
    end
    // Lengths, two cycles later; words a cycle later.
    len_0 <= {5'd0, size[len_queue][at[0]]};
    len_bytes <= len_0;
  end
  always @(posedge clk) if (!rst) begin
    if (res_valid) begin
      owed[peer] <= 1'b1;
      grant_high[peer] <= {7'd0, high};
      grant_low[peer] <= {7'd0, low};
      used_then[peer] <= peer ? used[47:24] : used[23:0];
      fit_high[peer] <= fit({7'd0, high}, gone[{peer, 1'b1}], there[{peer, 1'b1}], cost[{peer, 1'b1}][0], cost[{peer, 1'b1}][1]);
      fit_low[peer] <= fit({7'd0, low}, gone[{peer, 1'b0}], there[{peer, 1'b0}], cost[{peer, 1'b0}][0], cost[{peer, 1'b0}][1]);
    end

    if (rd_load) begin
      assert (!(rd_free && rd_queue == cur));
      loaded <= 1'b1;
      cur <= rd_queue;
      packet <= gone[rd_queue];
      word <= 0;
    end
    if (rd_en) begin
      assert (loaded && !rd_load && packet < there[cur]);
      rd_tag <= {1'b0, cur, packet, word};
      word <= word + 1'b1;
      if ({9'd0, word} + 12'd2 == cost[cur][packet[0]]) begin
        word <= 0;
        packet <= packet + 1'b1;
      end
    end
    if (rd_free) begin
      assert (packet != gone[cur] && rd_free_words == cost[cur][gone[cur][0]]);
      gone[cur] <= gone[cur] + 1'b1;
    end

    // The channel.
    if (!dma_busy && dma_valid && begins) begin
      assert (dma_words != 0 && dma_words <= 10'd512 && !broken && dma_later == headed);
      dma_busy <= 1'b1;
      dma_left <= dma_words;
    end
    if (dma_pop) dma_left <= dma_left - 1'b1;
    if (dma_done) dma_busy <= 1'b0;
    flying <= dma_error ? 5'd0 : flying + {4'd0, dma_pop} - {4'd0, dma_accept};
    if (dma_error) broken <= 1'b1;
    if (dma_pop) begin
      taken_words <= taken_words + 1'b1;
      ends_packet[taken_words] <= state == DATA && last_word;
    end
    if (dma_accept) begin
      arrived_words <= arrived_words + 1'b1;
      if (ends_packet[arrived_words]) arrived <= arrived + 1'b1;
    end

    if (dma_pop) begin
      assert (dma_left == 10'd1 || state != TAIL);
      assert (dma_left != 10'd1 || state == TAIL);
      if (state != DATA) assert (dma_data[55:52] == 4'd5 && dma_data[51:48] == dest);
      case (state)
        HEAD: begin
          assert (kind == nic_pkg::MSG_BURST && !unsent && owed[burst_peer]);
          assert (dma_data[31:24] >= fit_high[burst_peer] && dma_data[23:16] >= fit_low[burst_peer]);
          n_high <= dma_data[31:24];
          n_low <= dma_data[23:16];
          words <= dma_data[11:0];
          assert ((dma_data[11:0] == 0) == (dma_data[31:16] == 0));
          {seen_high, seen_low, words_high, words_low} <= 0;
          state <= (dma_data[31:16] == 0) ? TAIL : PKT;
          headed <= 1'b1;
        end
        PKT: begin
          assert (kind == nic_pkg::MSG_PKT && dma_data[11] == class_now);
          assert (dma_data[10:0] == {5'd0, size[queue_now][packet_index]});
          word_of <= 0;
          state <= DATA;
        end
        DATA: begin
          assert (dma_data == {57'd0, queue_now, packet_now, word_of});
          word_of <= word_of + 1'b1;
          if (last_word) begin
            if (class_now) begin
              seen_high <= seen_high + 1'b1;
              words_high <= words_high + cost_now;
            end else begin
              seen_low <= seen_low + 1'b1;
              words_low <= words_low + cost_now;
            end
            state <= more ? PKT : TAIL;
          end
        end
        default: begin
          assert (kind == nic_pkg::MSG_REQ && dma_data[59]);
          assert (words == words_high + words_low);
          assert (words_high <= grant_high[burst_peer] && words_low <= grant_low[burst_peer]);
          // What the REQ tells is no more than there is, and no less than there was without the burst.
          assert (dma_data[30:19] <= (burst_peer ? used[47:36] : used[23:12]));
          assert (dma_data[14:3] <= (burst_peer ? used[35:24] : used[11:0]));
          assert (dma_data[30:19] >= used_then[burst_peer][23:12] - words_high || used_then[burst_peer][23:12] < words_high);
          assert (dma_data[14:3] >= used_then[burst_peer][11:0] - words_low || used_then[burst_peer][11:0] < words_low);
          assert (dma_data[58] == (dma_data[31:0] == 0));
          null_tail <= dma_data[58];
          unsent <= 1'b1;
          state <= HEAD;
        end
      endcase
    end
    // The first packets of the burst: those not removed before it. Its packets are removed before its REQ.
    if (state == HEAD && !dma_busy && !loaded) begin
      first_high <= gone[{burst_peer, 1'b1}];
      first_low <= gone[{burst_peer, 1'b0}];
    end
    if (sent) begin
      assert (unsent && !broken && token_peer == burst_peer && token_return == null_tail && sent_empty == (words == 0));
      unsent <= 1'b0;
      owed[burst_peer] <= 1'b0;
      loaded <= 1'b0;
    end
    if (token_return) assert (sent);
    if (failed) begin
      assert (broken && !sent && owed[burst_peer]);
      if (headed) assert (failed_packets == n_high + n_low - arrived);
      else assert (failed_packets >= {4'd0, fit_high[burst_peer]} + {4'd0, fit_low[burst_peer]});
      // All of it is out of the input FIFO.
      assert (!loaded || packet == gone[cur]);
      owed[burst_peer] <= 1'b0;
      loaded <= 1'b0;
      unsent <= 1'b0;
      state <= HEAD;
    end
    if (sent || failed) begin
      {taken_words, arrived_words, arrived, broken, headed} <= 0;
    end
  end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// Two output FIFOs in which packets of up to 24 bytes come at any time, and a transmit FIFO that may be full at any
// time. A packet of the fast path begins only when the slow path has none; a packet once begun is read to its end
// before another begins, and removed once; words and the bytes of the last come out as they are, in the order in
// which they were read.
module fv_output_scheduler (
    input wire       clk,
    input wire       slow_arrives,
    input wire       fast_arrives,
    input wire       room
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg [4:0] slow_length, fast_length;
  (* anyseq *) reg [15:0] word;
  wire slow_ok = slow_length != 0 && slow_length <= 24;
  wire fast_ok = fast_length != 0 && fast_length <= 24;
  reg [2:0] slow_count = 0, fast_count = 0;
  wire slow_packet = slow_count != 0 && slow_ok;
  wire fast_packet = fast_count != 0 && fast_ok;
  wire slow_rd_en, slow_done, fast_rd_en, fast_done, tvalid, tlast;
  wire [63:0] tdata;
  wire [7:0] tkeep;
  reg [63:0] rd_data;
  output_scheduler dut (
      .clk(clk), .rst(rst), .slow_packet(slow_packet), .slow_rd_en(slow_rd_en), .slow_data(rd_data),
      .slow_done(slow_done), .fast_packet(fast_packet), .fast_rd_en(fast_rd_en), .fast_data(rd_data),
      .fast_done(fast_done), .m_axis_tvalid(tvalid), .m_axis_tdata(tdata), .m_axis_tkeep(tkeep),
      .m_axis_tlast(tlast), .m_axis_tready(room)
  );
  reg inside = 1'b0, slow_now;
  reg [2:0] reads = 0;         // data words
  // Words read and not yet out, oldest first: {slow, number in the packet}.
  reg [3:0] waiting[0:7];
  reg [3:0] waiting_count = 0;
  wire sends = tvalid && room;
  wire [3:0] oldest = waiting[0];
  wire [4:0] out_length = oldest[3] ? slow_length : fast_length;
  wire [2:0] out_words = {1'b0, out_length[4:3]} + {2'd0, out_length[2:0] != 0};
  wire reads_word = (slow_rd_en || fast_rd_en) && inside;
  wire [3:0] count_then = waiting_count - {3'd0, sends};
  integer k;
  wire [4:0] length = slow_now ? slow_length : fast_length;
  wire [2:0] words = {1'b0, length[4:3]} + {2'd0, length[2:0] != 0};
  always @(posedge clk) begin
    if (rst) begin
      slow_count <= 0;
      fast_count <= 0;
    end else begin
      slow_count <= slow_count + {2'd0, slow_arrives && slow_count != 7} - {2'd0, slow_done};
      fast_count <= fast_count + {2'd0, fast_arrives && fast_count != 7} - {2'd0, fast_done};
      assert (!(slow_rd_en && fast_rd_en) && !(slow_done && fast_done));
      if (slow_rd_en || fast_rd_en) begin
        if (!inside) begin
          // A boundary: the slow path strictly first.
          assert (slow_rd_en ? slow_packet : fast_packet && !slow_packet);
          inside <= 1'b1;
          slow_now <= slow_rd_en;
          reads <= 0;
          rd_data <= {53'd0, 6'd0, slow_rd_en ? slow_length : fast_length};
        end else begin
          assert (slow_rd_en == slow_now && reads < words);
          reads <= reads + 1'b1;
          rd_data <= {word, 44'd0, slow_now, reads};
        end
      end
      for (k = 0; k < 7; k = k + 1) if (sends) waiting[k] <= waiting[k+1];
      if (reads_word) waiting[count_then] <= {slow_now, reads};
      waiting_count <= count_then + {3'd0, reads_word};
      assert (waiting_count <= 5);
      if (tvalid) begin
        assert (waiting_count != 0 && tdata[3:0] == oldest);
        assert (tlast == (oldest[2:0] + 3'd1 == out_words));
        assert (tkeep == (tlast && out_length[2:0] != 0 ? 8'hff >> (4'd8 - {1'b0, out_length[2:0]}) : 8'hff));
      end
      if (slow_done || fast_done) begin
        assert (inside && slow_done == slow_now && reads == words);
        inside <= 1'b0;
      end
    end
  end
endmodule

// Two output FIFOs in which packets of up to 24 bytes come at any time, and a transmit FIFO that may be full at any
// time. A packet of the fast path begins only when the slow path has none; a packet once begun is read to its end
// before another begins; its words and the bytes of the last come out as they are, and it is removed once.
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
  wire [2:0] tbytes;
  reg [63:0] rd_data;
  output_scheduler dut (
      .clk(clk), .rst(rst), .slow_packet(slow_packet), .slow_rd_en(slow_rd_en), .slow_data(rd_data),
      .slow_done(slow_done), .fast_packet(fast_packet), .fast_rd_en(fast_rd_en), .fast_data(rd_data),
      .fast_done(fast_done), .m_axis_tvalid(tvalid), .m_axis_tdata(tdata), .m_axis_tbytes(tbytes),
      .m_axis_tlast(tlast), .m_axis_room(room)
  );
  reg inside = 1'b0, slow_now;
  reg [2:0] reads = 0, sent = 0;   // data words
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
          sent <= 0;
          rd_data <= {53'd0, 6'd0, slow_rd_en ? slow_length : fast_length};
        end else begin
          assert (slow_rd_en == slow_now && reads < words && room);
          reads <= reads + 1'b1;
          rd_data <= {word, 45'd0, reads};
        end
      end
      if (tvalid) begin
        assert (inside && tdata[2:0] == sent && sent < words);
        assert (tlast == (sent + 3'd1 == words));
        assert (tbytes == (tlast ? length[2:0] - 3'd1 : 3'd7));
        sent <= sent + 1'b1;
      end
      if (slow_done || fast_done) begin
        assert (inside && slow_done == slow_now && reads == words);
        assert (sent + {2'd0, tvalid} == words);
        inside <= 1'b0;
      end
    end
  end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// Frames of both classes that come at will, rings to which the host gives buffers at will, and a DMA channel that may
// fail. The high class goes first whenever its ring has a buffer; no buffer is used that was not given; a frame's words go
// to the buffer whose turn it is, then its descriptor with phase, class and length to its place; a frame that fails is
// told and costs no buffer.
module fv_slow_path_rx (
    input wire       clk,
    input wire [1:0] arrives,
    input wire [1:0] gives,
    input wire       begins,
    input wire       takes,
    input wire       ends,
    input wire       fails
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  // 17 to 32 bytes, by class.
  (* anyconst *) reg [3:0] past_17_low, past_17_high;
  reg [1:0] count[0:1];
  // The host may be anywhere in its second lap.
  reg [15:0] tail[0:1];
  reg [15:0] head[0:1];
  localparam [63:0] DESC = 64'h1100_0000_1000_0000, BUFFER = 64'h2100_0000_2000_0000;
  wire len_queue, rd_load, rd_queue, rd_en, rd_free, dma_valid, delivered, lost;
  wire [11:0] rd_free_words;
  wire [31:0] dma_addr;
  wire [9:0] dma_words;
  wire [63:0] dma_data;
  reg [10:0] len_0, len_bytes;
  reg [63:0] rd_data;
  reg [2:0] word;
  reg dma_busy = 1'b0;
  reg [9:0] dma_left;
  wire dma_pop = dma_busy && dma_left != 0 && takes && !dma_done;
  wire dma_error = dma_busy && fails;
  wire dma_done = (dma_busy && dma_left == 0 && ends) || dma_error;
  slow_path_rx dut (
      .clk(clk), .rst(rst), .enable(1'b1), .desc_base(DESC), .buffer_base(BUFFER), .tail({tail[1], tail[0]}),
      .packets({6'd0, count[1], 6'd0, count[0]}), .len_queue(len_queue), .len_bytes(len_bytes), .rd_load(rd_load),
      .rd_queue(rd_queue), .rd_en(rd_en), .rd_data(rd_data), .rd_free(rd_free), .rd_free_words(rd_free_words),
      .dma_valid(dma_valid), .dma_addr(dma_addr), .dma_words(dma_words), .dma_data(dma_data), .dma_pop(dma_pop),
      .dma_done(dma_done), .dma_error(dma_error), .delivered(delivered), .lost(lost)
  );
  wire [5:0] bytes = {2'd0, (rd_queue ? past_17_high : past_17_low)} + 6'd17;
  wire [9:0] words = (rd_queue ? past_17_high[3] : past_17_low[3]) ? 10'd4 : 10'd3;
  reg class_now, in_frame = 1'b0, described, told = 1'b0, told_lost;
  reg [2:0] out;   // words of the frame so far
  reg ready_high, ready_low;
  wire is_descriptor = dma_addr[28];
  integer k;
  always @(posedge clk) begin
    len_0 <= {5'd0, (len_queue ? past_17_high : past_17_low)} + 11'd17;
    len_bytes <= len_0;
    ready_high <= count[1] != 0 && head[1] != tail[1];
    ready_low <= count[0] != 0 && head[0] != tail[0];
    for (k = 0; k < 2; k = k + 1) begin
      if (rst) begin
        count[k] <= 0;
        head[k] <= 0;
        tail[k] <= 0;
      end else begin
        count[k] <= count[k] + {1'b0, arrives[k] && count[k] != 3} - {1'b0, rd_free && rd_queue == k};
        if (gives[k] && tail[k] - head[k] < 2) tail[k] <= tail[k] + 1'b1;
      end
    end
    if (!rst) begin
      told <= 1'b0;
      if (rd_load) begin
        assert (!in_frame && (rd_queue ? ready_high : ready_low && !ready_high));
        in_frame <= 1'b1;
        class_now <= rd_queue;
        described <= 1'b0;
        word <= 0;
        out <= 0;
      end
      if (rd_en) begin
        assert (in_frame && {7'd0, word} < words);
        rd_data <= {61'd0, word};
        word <= word + 1'b1;
      end
      if (rd_free) assert (in_frame && rd_queue == class_now && {7'd0, word} == words
                           && rd_free_words == {2'd0, words} + 12'd1);
      if (!dma_busy && dma_valid && begins && !dma_done) begin
        dma_busy <= 1'b1;
        dma_left <= dma_words;
        assert (in_frame);
        if (is_descriptor) begin
          assert (out == words[2:0] && dma_words == 10'd1 && !described);
          assert (dma_addr == (class_now ? DESC[63:32] : DESC[31:0]) + {21'd0, head[class_now][7:0], 3'd0});
          assert (dma_data == {!head[class_now][8], class_now, 51'd0, 5'd0, bytes});
        end else begin
          assert (dma_words == words);
          assert (dma_addr == (class_now ? BUFFER[63:32] : BUFFER[31:0]) + {13'd0, head[class_now][7:0], 11'd0});
        end
      end
      if (dma_pop) begin
        dma_left <= dma_left - 1'b1;
        if (!is_descriptor) begin
          assert (dma_data == {61'd0, out});
          out <= out + 1'b1;
        end
      end
      if (dma_done) begin
        dma_busy <= 1'b0;
        if (is_descriptor) begin
          described <= 1'b1;
          told <= 1'b1;
          told_lost <= dma_error;
          in_frame <= 1'b0;
          if (!dma_error) head[class_now] <= head[class_now] + 1'b1;
        end
      end
      assert (delivered == (told && !told_lost));
      if (lost) begin
        assert (told ? told_lost : in_frame);
        in_frame <= 1'b0;
      end
    end
  end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// Any descriptors, an output FIFO that drains at will, a DMA channel that may fail, and host memory that answers when it
// likes, not at all, wrongly, or another read. No word is written without room; a frame is its header and as many words
// as its length asks for, or taken back; what comes with another read's tag is not part of it; and a descriptor that cannot
// be meant is never read for.
module fv_slow_path_tx (
    input wire        clk,
    input wire        posts,
    input wire [63:0] post_data,
    input wire        tick,
    input wire        drains,
    input wire        begins,
    input wire        ends,
    input wire        fails,
    input wire        answers,
    input wire        answer_error,
    input wire [3:0]  answer_tag
);
  localparam [11:0] CAP = 12'd9;
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  reg [11:0] free;
  (* anyconst *) reg [11:0] first_free;
  wire dma_valid, dma_read, out_valid, out_last, out_cancel, reported, refused, failed, timed_out;
  wire [31:0] dma_addr;
  wire [9:0] dma_words;
  wire [63:0] dma_data, out_data;
  wire [3:0] read_tag;
  wire [47:0] status;
  reg dma_busy = 1'b0;
  wire dma_done = dma_busy && ends;
  // A read that fails is not answered.
  reg answered = 1'b0;
  wire dma_error = fails && !(dma_read && answered);
  wire post = posts && !rst;
  slow_path_tx dut (
      .clk(clk), .rst(rst), .enable(1'b1), .tick(tick), .post_valid(post), .post_data(post_data),
      .done_addr(32'h8000), .free_words(free), .dma_valid(dma_valid), .dma_read(dma_read), .dma_addr(dma_addr),
      .dma_words(dma_words), .dma_data(dma_data), .dma_done(dma_done), .dma_error(dma_error), .read_tag(read_tag),
      .rsp_valid(answers && !rst), .rsp_error(answer_error), .rsp_tag(answer_tag), .rsp_data({60'd0, answer_tag}),
      .out_valid(out_valid), .out_data(out_data), .out_last(out_last), .out_cancel(out_cancel), .status(status),
      .reported(reported), .refused(refused), .failed(failed), .timed_out(timed_out)
  );
  wire [10:0] length = post_data[42:32];
  reg inside = 1'b0;
  reg [11:0] left, written;   // words of the frame that is being written
  reg [3:0] tag;
  reg [11:0] taken_back;
  always @(posedge clk) begin
    assume (first_free <= CAP);
    // Small frames, or what cannot be meant.
    assume (length < 11'd34 || length > 11'd1518);
    if (rst) free <= first_free;
    else begin
      taken_back = out_cancel ? written : 12'd0;
      free <= free + {11'd0, drains && free + written < CAP} - {11'd0, out_valid && !out_cancel} + taken_back;
      if (!dma_busy && dma_valid && begins) begin
        dma_busy <= 1'b1;
        if (dma_read) assert (dma_addr[2:0] == 0 && dma_words >= 2 && dma_words <= 5);
        else assert (dma_words == 1 && dma_data == {16'd0, status});
      end
      if (dma_done) dma_busy <= 1'b0;
      answered <= dma_busy && !dma_done && (answered || (answers && answer_tag == read_tag));
      assume (!(dma_read && dma_done && dma_error && answers && answer_tag == read_tag));
      assume (!(answers && answer_tag == read_tag && dma_read && dma_valid && !dma_busy));
      assert (!(out_valid && out_cancel));
      if (out_valid) begin
        assert (free != 0);
        written <= inside ? written + 1'b1 : 12'd1;
        if (!inside) begin
          assert (out_data[63:60] == nic_pkg::MSG_PKT && out_data[10:0] >= 14 && !out_last);
          inside <= 1'b1;
          left <= {4'd0, out_data[10:3]} + {11'd0, out_data[2:0] != 0};
          tag <= read_tag;
        end else begin
          assert (left != 0 && out_last == (left == 1) && out_data == {60'd0, tag});
          left <= left - 1'b1;
          if (out_last) begin
            inside <= 1'b0;
            written <= 0;
          end
        end
      end
      if (out_cancel) begin
        assert (inside);
        inside <= 1'b0;
        written <= 0;
      end
    end
    if (rst) begin
      written <= 0;
      inside <= 1'b0;
    end
  end
endmodule

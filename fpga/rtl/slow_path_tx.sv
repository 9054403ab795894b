// SPDX-License-Identifier: MIT OR Apache-2.0
// DMA channel i: frames from the host. The driver posts descriptors {tag, length, address} into a queue on the card; one
// at a time, when the slow output FIFO has room for the frame, it is read from host memory and its words go into that
// FIFO. A descriptor that cannot be meant is refused, a read that fails or is not answered within four ticks given up,
// and its frame taken back; both are finished as well. How many are finished is written to host memory every sixteen
// descriptors and when the queue is empty, and again if it did not arrive: {failed, tag of the last, finished}.
//
// The bus tag of a read that was given up rests for 256 ticks, so that its answer, should it come yet, is not taken for
// another one's.
`default_nettype none

module slow_path_tx (
    input  wire        clk,
    input  wire        rst,
    input  wire        enable,        // else descriptors are not taken, nor counted as finished
    input  wire        tick,
    input  wire        post_valid,
    input  wire [63:0] post_data,     // tag[63:48], length[42:32], address
    input  wire [31:0] done_addr,
    input  wire [11:0] free_words,    // of the slow output FIFO
    output wire        dma_valid,
    output wire        dma_read,
    output wire [31:0] dma_addr,
    output wire [9:0]  dma_words,
    output wire [63:0] dma_data,
    input  wire        dma_done,
    input  wire        dma_error,
    output reg  [3:0]  read_tag,      // of the read in progress; answers to earlier ones are ignored
    input  wire        rsp_valid,     // a word that was read
    input  wire        rsp_error,     // which is not to be trusted
    input  wire [3:0]  rsp_tag,
    input  wire [63:0] rsp_data,
    // To the slow output FIFO.
    output reg         out_valid,
    output reg  [63:0] out_data,
    output reg         out_last,
    output reg         out_cancel,
    output wire [47:0] status,
    output reg         reported,      // pulse: the status is in host memory
    output reg         refused,       // pulse
    output reg         failed,        // pulse
    output reg         timed_out      // pulse
);
  localparam [10:0] SHORTEST = 11'd14, LONGEST = 11'd1518;
  localparam [2:0] IDLE = 3'd0, ASK = 3'd1, FILL = 3'd2, FAIL = 3'd3, REPORT = 3'd4;
  reg [2:0] state;
  reg [15:0] done, failures, last_tag;
  reg [7:0] left;
  reg [2:0] waited;
  reg spoilt;   // a word of the frame is not to be trusted
  reg unreported;
  reg [15:0] resting;   // bus tags
  reg [7:0] rest;
  wire [3:0] next_tag = read_tag + 1'b1;
  assign status = {failures, last_tag, done};

  // The queue. What cannot be meant waits its turn as well, so that descriptors finish in order.
  wire [10:0] post_length = post_data[42:32];
  wire post_bad = post_length < SHORTEST || post_length > LONGEST || post_data[2:0] != 0;
  wire full, queued, bad;
  wire [6:0] level;
  wire [15:0] tag;
  wire [10:0] length;
  wire [31:0] address;
  reg finish;   // the oldest descriptor is finished
  wire finish_failed = state == FAIL;
  wire overrun = post_valid && full && enable;
  wire ignored = post_valid && !enable;
  sync_fifo #(.W(60), .AW(6)) posts (
      .clk(clk), .rst(rst), .wr_en(post_valid && !full && enable),
      .wr_data({post_bad, post_data[63:48], post_length, post_data[31:0]}), .full(full), .rd_en(finish),
      .rd_data({bad, tag, length, address}), .rd_valid(queued), .level(level)
  );
  wire [7:0] data_words = length[10:3] + {7'd0, length[2:0] != 0};
  reg room;
  wire word = rsp_valid && rsp_tag == read_tag && (state == ASK || state == FILL) && left != 0;
  wire complete = word && !rsp_error && !spoilt && left == 8'd1;
  wire unused = |post_data[47:43];

  wire whole = left == 0 && !spoilt;

  assign dma_valid = state == ASK || state == REPORT;
  assign dma_read = state == ASK;
  assign dma_addr = (state == ASK) ? address : done_addr;
  assign dma_words = (state == ASK) ? {2'd0, data_words} : 10'd1;
  assign dma_data = {16'd0, status};

  always_comb begin
    finish = finish_failed;
    if (state == FILL && (complete || whole)) finish = 1'b1;
  end

  always_ff @(posedge clk) begin
    // The word that is being written is not in free_words yet.
    room <= queued && (bad || free_words > {4'd0, data_words}) && !finish && !out_valid;
    out_valid <= 1'b0;
    out_last <= 1'b0;
    out_cancel <= 1'b0;
    out_data <= rsp_data;
    reported <= 1'b0;
    refused <= overrun || ignored;
    failed <= 1'b0;
    timed_out <= 1'b0;
    // Before a tag that begins to rest now.
    if (tick && rest == 8'd255) resting <= 0;
    if (word) begin
      out_valid <= !rsp_error && !spoilt;
      out_last <= left == 8'd1;
      left <= left - 1'b1;
      if (rsp_error) spoilt <= 1'b1;
    end
    case (state)
      IDLE: begin
        waited <= 0;
        spoilt <= 1'b0;
        left <= data_words;
        if (room && bad && !overrun && !ignored) begin
          refused <= 1'b1;
          state <= FAIL;
        end else if (room && !bad) begin
          read_tag <= next_tag;
          if (!resting[next_tag]) begin
            out_valid <= 1'b1;
            out_data <= {nic_pkg::MSG_PKT, 49'd0, length};
            state <= ASK;
          end
        end else if (unreported && tick) state <= REPORT;
      end
      ASK, FILL: begin
        if (state == FILL && tick) waited <= waited + 1'b1;
        if (state == ASK && dma_done && !dma_error) state <= FILL;
        if (state == FILL && (complete || whole)) state <= (done[3:0] == 4'hf || level == 7'd1) ? REPORT : IDLE;
        else if ((state == ASK && dma_done && dma_error) || (state == FILL && (spoilt || waited[2]))) begin
          failed <= 1'b1;
          timed_out <= waited[2];
          out_valid <= 1'b0;
          out_cancel <= 1'b1;
          if (waited[2]) resting[read_tag] <= 1'b1;
          state <= FAIL;
        end
      end
      FAIL: state <= (done[3:0] == 4'hf || level == 7'd1) ? REPORT : IDLE;
      default:
        if (dma_done) begin
          reported <= !dma_error;
          unreported <= dma_error;
          state <= IDLE;
        end
    endcase
    if (tick) rest <= rest + 1'b1;
    if (timed_out) rest <= 0;
    if (finish) last_tag <= tag;
    done <= done + {15'd0, finish} + {15'd0, overrun};
    failures <= failures + {15'd0, finish_failed} + {15'd0, overrun};
    if (rst) begin
      state <= IDLE;
      done <= 0;
      failures <= 0;
      last_tag <= 0;
      read_tag <= 0;
      unreported <= 1'b0;
      resting <= 0;
      room <= 1'b0;
      out_valid <= 1'b0;
      out_cancel <= 1'b0;
      reported <= 1'b0;
      refused <= 1'b0;
      failed <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk) if (!rst) assert (!(state == ASK && resting[read_tag]));
`endif
endmodule

`default_nettype wire

// DMA channel i: frames from the host. The driver posts descriptors {length, address} into a queue on the card; one
// at a time, when the slow output FIFO has room for the frame, it is read from host memory and its split completion
// goes into that FIFO. How many are done is written to host memory every sixteen frames and when the queue is empty.
`default_nettype none

module slow_path_tx (
    input  wire        clk,
    input  wire        rst,
    input  wire        post_valid,
    input  wire [42:0] post_data,     // length[42:32], address
    input  wire [31:0] done_addr,
    input  wire [11:0] free_words,    // of the slow output FIFO
    output wire        dma_valid,
    output wire        dma_read,
    output wire [31:0] dma_addr,
    output wire [9:0]  dma_words,
    output wire [63:0] dma_data,
    input  wire        dma_done,
    input  wire        split_valid,   // a word of our completion
    input  wire [63:0] split_data,
    // To the slow output FIFO.
    output reg         out_valid,
    output reg  [63:0] out_data,
    output reg         out_last
);
  localparam [2:0] IDLE = 3'd0, ASK = 3'd1, FILL = 3'd2, REPORT = 3'd3;
  reg [2:0] state;
  reg [15:0] done;
  reg [7:0] left;
  wire [42:0] post;
  wire queued, full;
  wire [6:0] level;
  wire pop = state == FILL && split_valid && left == 8'd1;
  sync_fifo #(.W(43), .AW(6)) posts (
      .clk(clk), .rst(rst), .wr_en(post_valid), .wr_data(post_data), .full(full), .rd_en(pop), .rd_data(post),
      .rd_valid(queued), .level(level)
  );
  wire [10:0] length = post[42:32];
  wire [7:0] data_words = length[10:3] + {7'd0, length[2:0] != 0};
  reg room;

  assign dma_valid = state == ASK || state == REPORT;
  assign dma_read = state == ASK;
  assign dma_addr = (state == ASK) ? post[31:0] : done_addr;
  assign dma_words = (state == ASK) ? {2'd0, data_words} : 10'd1;
  assign dma_data = {48'd0, done};

  always @(posedge clk) begin
    room <= queued && free_words > {4'd0, data_words};
    out_valid <= 1'b0;
    out_last <= 1'b0;
    out_data <= split_data;
    case (state)
      IDLE:
        if (room) begin
          out_valid <= 1'b1;
          out_data <= {nic_pkg::MSG_PKT, 49'd0, length};
          left <= data_words;
          state <= ASK;
        end
      ASK: if (dma_done) state <= FILL;
      FILL:
        if (split_valid) begin
          out_valid <= 1'b1;
          left <= left - 1'b1;
          if (left == 8'd1) begin
            out_last <= 1'b1;
            done <= done + 1'b1;
            room <= 1'b0;
            state <= (done[3:0] == 4'hf || level == 7'd1) ? REPORT : IDLE;
          end
        end
      default: begin
        room <= 1'b0;
        if (dma_done) state <= IDLE;
      end
    endcase
    if (rst) begin
      state <= IDLE;
      done <= 0;
      room <= 1'b0;
      out_valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire

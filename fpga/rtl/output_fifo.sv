// Output FIFO: packets as header word and data words. A packet can be read when it is complete. Who writes has
// reserved the room (grant or split read), so there is no full signal, only the free words to reserve from.
`default_nettype none

module output_fifo #(
    parameter CAP_WORDS = 1920,   // 15,360 bytes
    parameter AW = 11
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        wr_valid,
    input  wire [63:0] wr_data,
    input  wire        wr_last,
    output reg  [11:0] free_words,
    output wire        rd_packet,  // a whole packet is there
    input  wire        rd_en,
    output wire [63:0] rd_data,    // a cycle after rd_en
    input  wire        rd_done     // pulse: the packet has been read
);
  reg [AW-1:0] wr_ptr, rd_ptr;
  reg [8:0] packets;
  assign rd_packet = packets != 0;

  always @(posedge clk) begin
    if (wr_valid) wr_ptr <= wr_ptr + 1'b1;
    if (rd_en) rd_ptr <= rd_ptr + 1'b1;
    free_words <= free_words + {11'd0, rd_en} - {11'd0, wr_valid};
    packets <= packets + {8'd0, wr_valid && wr_last} - {8'd0, rd_done};
    if (rst) begin
      wr_ptr <= 0;
      rd_ptr <= 0;
      free_words <= CAP_WORDS[11:0];
      packets <= 0;
    end
  end

  ram_1r1w #(.W(64), .DEPTH(1 << AW)) ram (
      .clk(clk), .wr_en(wr_valid), .wr_addr(wr_ptr), .wr_data(wr_data), .rd_addr(rd_ptr), .rd_data(rd_data)
  );

`ifdef ASSERTIONS
  always @(posedge clk)
    if (!rst) begin
      assert (!(wr_valid && free_words == 0));
      assert (free_words <= CAP_WORDS);
      assert (!(rd_done && packets == 0));
    end
`endif
endmodule

`default_nettype wire

// The response scheduler with an output FIFO's free space and input cards that keep to their grants (which the burst
// scheduler asserts) and to one token each: the FIFO never overflows, whatever is drained when, and one grant is
// outstanding at most. The FIFO begins with any occupancy.
module fv_credit (
    input wire clk,
    input wire [1:0] source,
    input wire stand_alone,
    input wire [11:0] ask_high,
    input wire [11:0] ask_low,
    input wire word,
    input wire tail,
    input wire drain,
    input wire ready,
    input wire high_first,
    input wire [11:0] minimum
);
  localparam [11:0] CAP = 12'd1920;
  reg rst = 1'b1;
  always @(posedge clk) rst <= 1'b0;
  reg [11:0] free;
  (* anyconst *) reg [11:0] first_free;
  wire res_valid;
  wire [1:0] res_dest;
  wire [11:0] res_high, res_low;
  reg [3:0] known = 0;       // cards whose token is here
  reg burst = 1'b0;          // the RES has been sent, the burst may come
  reg [1:0] from;
  reg [12:0] left = 0;       // words that it may still bring
  wire arrives = burst && word && left != 0;
  wire trailing = burst && tail && !arrives;
  wire drains = drain && free < CAP;
  wire asks = {ask_high, ask_low} != 0;
  wire alone = stand_alone && !rst && !trailing && !known[source] && asks;
  response_scheduler #(.NICS(4)) dut (
      .clk(clk), .rst(rst), .grant_min_words(minimum), .high_first(high_first), .free_words(free),
      .req_valid(alone || trailing), .req_trailing(trailing), .req_source(trailing ? from : source),
      .req_high(ask_high), .req_low(ask_low), .res_valid(res_valid), .res_ready(ready && res_valid),
      .res_dest(res_dest), .res_high(res_high), .res_low(res_low)
  );
  wire [12:0] granted = {1'b0, res_high} + {1'b0, res_low};
  always @(posedge clk) begin
    assume (first_free <= CAP);
    if (rst) free <= first_free;
    else begin
      free <= free + {11'd0, drains} - {11'd0, arrives};
      if (alone) known[source] <= 1'b1;
      if (trailing) known[from] <= asks;
      if (res_valid && ready) begin
        assert (!burst && known[res_dest]);
        burst <= 1'b1;
        from <= res_dest;
        left <= granted;
      end else if (arrives) left <= left - 1'b1;
      if (trailing) burst <= 1'b0;
      assert (!(arrives && free == 0));
      if (res_valid) assert (granted <= {1'b0, free});
      if (burst) assert (left <= {1'b0, free});
    end
  end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// The response scheduler, under any of its rules, with an output FIFO's free space and input cards that keep to their
// grants (which the burst receiver checks) and to one token each, but may fall silent, fail and begin anew at any time: the
// FIFO never overflows, whatever is drained when, and one grant is outstanding at most, which is taken back after a failure
// or four ticks without a word. The FIFO begins with any occupancy.
module fv_credit (
    input wire clk,
    input wire [1:0] source,
    input wire stand_alone,
    input wire [11:0] ask_high,
    input wire [11:0] ask_low,
    input wire brings,
    input wire tail,
    input wire drain,
    input wire ready,
    input wire tick,
    input wire fails,
    input wire [3:0] cancels,
    input wire [11:0] minimum
);
  localparam [11:0] CAP = 12'd1920;
  reg rst = 1'b1;
  always @(posedge clk) rst <= 1'b0;
  reg [11:0] free;
  (* anyconst *) reg [11:0] first_free;
  (* anyconst *) reg [1:0] policy;
  (* anyconst *) reg [10:0] quantum;
  wire res_valid, serving, abandoned;
  wire [1:0] res_dest;
  wire [11:0] res_high, res_low;
  reg [3:0] known = 0;       // cards whose token is here
  reg burst = 1'b0;          // the RES has been sent, the burst may come
  reg [1:0] from;
  reg [12:0] left = 0;       // words that it may still bring
  wire arrives = serving && brings && left != 0;
  wire trailing = serving && tail && !arrives;
  wire drains = drain && free < CAP;
  wire asks = {ask_high, ask_low} != 0;
  wire [3:0] cancel = rst ? 4'd0 : cancels;
  wire alone = stand_alone && !rst && !(trailing && source == from) && !known[source] && asks && !cancel[source];
  wire taken = res_valid && ready;
  response_scheduler #(.NICS(4)) dut (
      .clk(clk), .rst(rst), .grant_min_words(minimum), .policy(policy), .quantum_words({1'b0, quantum}), .tick(tick),
      .free_words(free), .alone_valid(alone), .alone_source(source), .alone_high(ask_high), .alone_low(ask_low),
      .tail_valid(trailing), .tail_high(ask_high), .tail_low(ask_low), .word(arrives || trailing), .stored(arrives),
      .cancel(cancel), .res_valid(res_valid), .res_ready(taken), .res_failed(serving && fails), .res_dest(res_dest),
      .res_high(res_high), .res_low(res_low), .serving(serving), .abandoned(abandoned)
  );
  reg [2:0] silent = 0, was_silent = 0;   // ticks since the last word or the RES; and a cycle ago
  reg failed = 1'b0;
  wire [12:0] granted = {1'b0, res_high} + {1'b0, res_low};
  always @(posedge clk) begin
    assume (first_free <= CAP);
    if (rst) free <= first_free;
    else begin
      free <= free + {11'd0, drains} - {11'd0, arrives};
      known <= (known | (alone ? 4'd1 << source : 4'd0)) & ~cancel;
      if (trailing) known[from] <= asks && !cancel[from];
      // Lost with its grant, until it begins anew.
      if (abandoned) known[from] <= !cancel[from];
      if (taken) begin
        assert (!burst && known[res_dest]);
        from <= res_dest;
        left <= granted;
      end else if (arrives) left <= left - 1'b1;
      burst <= taken ? !cancel[res_dest] : serving && !trailing && !cancel[from];
      was_silent <= silent;
      failed <= fails;
      if (taken || arrives || trailing) silent <= 0;
      else if (tick && silent != 7) silent <= silent + 1'b1;
      if (abandoned) assert (failed || was_silent >= 4);
      assert (!serving || (burst && res_dest == from) || abandoned);
      assert (!burst || serving || abandoned);
      assert (!(arrives && free == 0));
      if (res_valid) assert (granted <= {1'b0, free});
      if (serving) assert (left <= {1'b0, free});
    end
  end
endmodule

// SPDX-License-Identifier: MIT OR Apache-2.0
// The request scheduler with three peers whose FIFOs fill and empty at will, whose links fail and come back, and who
// answer or do not. For each peer one token: a REQ takes it, and none is sent while it is away; a REQ tells what waits,
// and never nothing, and goes only where the link is up; one RES is awaited at a time, for two ticks at most; a RES counts
// only if it is owed; and a peer whose token is here, whose link is up and whose packets wait is passed over twice at
// most.
module fv_request_scheduler (
    input wire        clk,
    input wire [71:0] used,
    input wire        tick,
    input wire [2:0]  ready,
    input wire [2:0]  wants_clear,
    input wire        takes,
    input wire        answers,
    input wire [1:0]  answering,
    input wire        returns,
    input wire        asks_more,
    input wire [1:0]  returned
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  reg [2:0] away = 0;        // the token is at the peer
  reg [2:0] owing = 0;       // a RES is
  reg awaited = 1'b0, offered = 1'b0;
  reg [1:0] asked, waited;
  wire [1:0] asked_now = (req_valid && !offered) ? req_peer : asked;
  wire req_valid;
  wire [1:0] req_peer;
  wire [11:0] req_high, req_low;
  wire req_ready = req_valid && takes;
  wire res_valid = answers && answering < 3 && !rst;
  wire res_accept;
  wire [2:0] owed;
  wire [2:0] clear = rst ? 3'd0 : wants_clear & ~(req_valid ? 3'd1 << req_peer : 3'd0) & ~ready & ~ready_before;
  wire free_now = returned < 3 && away[returned] && !owing[returned] && !rst && !(req_valid && req_peer == returned)
      && !clear[returned];
  wire token_return = returns && free_now;
  wire asks = asks_more && free_now && !token_return;
  reg [71:0] used_before;
  reg [2:0] ready_before = 0;
  request_scheduler #(.PEERS(3)) dut (
      .clk(clk), .rst(rst), .tick(tick), .ready(ready), .clear(clear), .used_words(used), .req_valid(req_valid),
      .req_ready(req_ready), .req_peer(req_peer), .req_high(req_high), .req_low(req_low), .res_valid(res_valid),
      .res_peer(answering), .res_accept(res_accept), .owed(owed), .asks(asks), .token_return(token_return),
      .token_peer(returned)
  );
  (* anyconst *) reg [1:0] who;
  reg [1:0] passed = 0;
  integer i;
  always @(posedge clk) begin
    assume (who < 3);
    used_before <= used;
    ready_before <= ready;
    if (!rst) begin
      offered <= req_valid && !req_ready;
      assert (owed == owing || (req_valid && !offered));
      if (req_valid) begin
        assert (req_peer < 3 && {req_high, req_low} != 0);
        assert (!offered || req_peer == asked);
        if (!offered) begin
          // A new one.
          assert (!awaited || waited >= 2);
          assert (!away[req_peer] && ready_before[req_peer]);
          assert ({req_high, req_low} == used_before[24*req_peer+:24]);
          awaited <= 1'b1;
          asked <= req_peer;
          away[req_peer] <= 1'b1;
          owing[req_peer] <= 1'b1;
          passed <= (req_peer == who) ? 2'd0 : passed + 1'b1;
        end
      end
      if (req_valid && !offered) waited <= {1'b0, tick};
      else if (tick && waited != 3) waited <= waited + 1'b1;
      assert (res_accept == (res_valid && owed[answering] && ready[answering]));
      if (res_accept) begin
        owing[answering] <= 1'b0;
        if (answering == asked_now) awaited <= 1'b0;
      end
      if (asks) owing[returned] <= 1'b1;
      if (token_return) away[returned] <= 1'b0;
      for (i = 0; i < 3; i = i + 1)
        if (clear[i]) begin
          away[i] <= 1'b0;
          owing[i] <= 1'b0;
          if (asked_now == i) awaited <= 1'b0;
        end
      if (away[who] || !ready_before[who] || used_before[24*who+:24] == 0) passed <= 0;
      assert (passed <= 2);
    end
  end
endmodule

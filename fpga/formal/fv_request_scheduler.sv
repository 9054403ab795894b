// The request scheduler with three peers whose FIFOs fill and empty at will. For each peer one token: a REQ takes it,
// and none is sent while it is away; a REQ tells what waits, and never nothing; one RES at a time is awaited; and a
// peer whose token is here and whose packets wait is passed over twice at most.
module fv_request_scheduler (
    input wire        clk,
    input wire [71:0] used,
    input wire        ready,
    input wire        answers,
    input wire        returns,
    input wire [1:0]  returned
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  reg [2:0] away = 0;        // the token is at the peer
  reg awaited = 1'b0, offered = 1'b0;
  reg [1:0] asked;
  wire req_valid;
  wire [1:0] req_peer;
  wire [11:0] req_high, req_low;
  wire req_ready = req_valid && ready;
  wire res_valid = answers && awaited && !req_valid && !rst;
  wire token_return = returns && returned < 3 && away[returned] && !(awaited && asked == returned) && !rst;
  reg [71:0] used_before;
  request_scheduler #(.PEERS(3)) dut (
      .clk(clk), .rst(rst), .used_words(used), .req_valid(req_valid), .req_ready(req_ready), .req_peer(req_peer),
      .req_high(req_high), .req_low(req_low), .res_valid(res_valid), .res_peer(asked), .token_return(token_return),
      .token_peer(returned)
  );
  (* anyconst *) reg [1:0] who;
  reg [1:0] passed = 0;
  always @(posedge clk) begin
    assume (who < 3);
    used_before <= used;
    if (!rst) begin
      offered <= req_valid && !req_ready;
      if (req_valid) begin
        assert (req_peer < 3 && {req_high, req_low} != 0);
        assert (!offered || req_peer == asked);
        if (!offered) begin
          // A new one.
          assert (!awaited && !away[req_peer]);
          assert ({req_high, req_low} == used_before[24*req_peer+:24]);
          awaited <= 1'b1;
          asked <= req_peer;
          away[req_peer] <= 1'b1;
          passed <= (req_peer == who) ? 2'd0 : passed + 1'b1;
        end
      end
      if (res_valid) awaited <= 1'b0;
      if (token_return) away[returned] <= 1'b0;
      if (away[who] || used_before[24*who+:24] == 0) passed <= 0;
      assert (passed <= 2);
    end
  end
endmodule

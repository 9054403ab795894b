// SPDX-License-Identifier: MIT OR Apache-2.0
// Input side, requests. For each peer there is one token: it is here when the peer knows of nothing waiting. When it
// is here and a packet waits, the peer is active; of the active peers one is sent a REQ in round-robin order, and no
// other REQ goes out until its RES has come, or two ticks have passed: a peer that does not answer must not silence
// the others. A trailing REQ that is not null keeps the token at the peer; a null one returns it when the whole burst
// has left the card. The token is what closes the lost wake-up: a stand-alone REQ can never overtake a burst whose
// trailing REQ is null.
`default_nettype none

module request_scheduler #(
    parameter PEERS = 3,
    parameter PW = $clog2(PEERS)
) (
    input  wire                clk,
    input  wire                rst,
    input  wire                tick,
    input  wire [PEERS-1:0]    ready,        // the link is up
    input  wire [PEERS-1:0]    clear,        // pulse: the exchange with the peer begins anew
    input  wire [24*PEERS-1:0] used_words,   // per peer: {high, low}
    // To the message channel: peer, then the occupancy that the REQ tells.
    output reg                 req_valid,
    input  wire                req_ready,
    output reg  [PW-1:0]       req_peer,
    output reg  [11:0]         req_high,
    output reg  [11:0]         req_low,
    // A RES arrived; it counts if a REQ is owed one.
    input  wire                res_valid,
    input  wire [PW-1:0]       res_peer,
    output wire                res_accept,
    output reg  [PEERS-1:0]    owed,         // the RES to a REQ, stand-alone or trailing, has not come
    // A burst asks for more; a burst has left the card whose trailing REQ was null.
    input  wire                asks,
    input  wire                token_return,
    input  wire [PW-1:0]       token_peer
);
  reg [PEERS-1:0] token;
  reg waiting;
  reg [1:0] waited;          // ticks
  reg [PW-1:0] waiting_peer;
  reg [PEERS-1:0] active;
  wire [PEERS-1:0] grant;
  wire [PW-1:0] pick;
  wire any;
  wire take = any && !waiting && !req_valid;
  assign res_accept = res_valid && owed[res_peer] && ready[res_peer];

  wire [23:0] used_of[0:PEERS-1];
  genvar g;
  generate
    for (g = 0; g < PEERS; g = g + 1) begin : peers
      assign used_of[g] = used_words[24*g+:24];
    end
  endgenerate
  wire [23:0] picked = used_of[pick];
  integer i;
  always_comb for (i = 0; i < PEERS; i = i + 1) active[i] = token[i] && ready[i] && used_words[24*i+:24] != 0;

  rr_arbiter #(.N(PEERS), .IW(PW)) pointer (
      .clk(clk), .rst(rst), .req(active), .take(take), .grant(grant), .index(pick), .any(any)
  );

  always_ff @(posedge clk) begin
    if (req_ready) req_valid <= 1'b0;
    if (take) begin
      req_valid <= 1'b1;
      req_peer <= pick;
      req_low <= picked[11:0];
      req_high <= picked[23:12];
      waiting <= 1'b1;
      waited <= 0;
      waiting_peer <= pick;
      token <= token & ~grant;
      owed <= owed | grant;
    end else if (tick) waited <= waited + 1'b1;
    if (waiting && !req_valid && waited[1]) waiting <= 1'b0;
    if (res_accept) begin
      owed[res_peer] <= 1'b0;
      if (!take && res_peer == waiting_peer) waiting <= 1'b0;
    end
    if (asks) owed[token_peer] <= 1'b1;
    if (token_return) token[token_peer] <= 1'b1;
    for (i = 0; i < PEERS; i = i + 1) if (clear[i]) begin
      token[i] <= 1'b1;
      owed[i] <= 1'b0;
      if (!take && waiting_peer == i[PW-1:0]) waiting <= 1'b0;
    end
    if (rst) begin
      token <= {PEERS{1'b1}};
      owed <= 0;
      waiting <= 1'b0;
      req_valid <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk) if (!rst) assert (!(token_return && token[token_peer]));
`endif
endmodule

`default_nettype wire

// Input side, requests. For each peer there is one token: it is here when the peer knows of nothing waiting. When it
// is here and a packet waits, the peer is active; of the active peers one is sent a REQ in round-robin order, and no
// other REQ goes out until its RES has come. A trailing REQ that is not null keeps the token at the peer; a null one
// returns it when the whole burst has left the card. The token is what closes the lost wake-up: a stand-alone REQ
// can never overtake a burst whose trailing REQ is null.
`default_nettype none

module request_scheduler #(
    parameter PEERS = 3,
    parameter PW = $clog2(PEERS)
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [24*PEERS-1:0] used_words,   // per peer: {high, low}
    // To the message channel: peer, then the occupancy that the REQ tells.
    output reg                 req_valid,
    input  wire                req_ready,
    output reg  [PW-1:0]       req_peer,
    output reg  [11:0]         req_high,
    output reg  [11:0]         req_low,
    // A RES arrived.
    input  wire                res_valid,
    input  wire [PW-1:0]       res_peer,
    // A burst has left the card; its trailing REQ was null.
    input  wire                token_return,
    input  wire [PW-1:0]       token_peer
);
  reg [PEERS-1:0] token;
  reg waiting;
  reg [PW-1:0] waiting_peer;
  reg [PEERS-1:0] active;
  wire [PEERS-1:0] grant;
  wire [PW-1:0] pick;
  wire any;
  wire take = any && !waiting && !req_valid;

  wire [23:0] used_of[0:PEERS-1];
  genvar g;
  generate
    for (g = 0; g < PEERS; g = g + 1) begin : peers
      assign used_of[g] = used_words[24*g+:24];
    end
  endgenerate
  wire [23:0] picked = used_of[pick];
  integer i;
  always @* for (i = 0; i < PEERS; i = i + 1) active[i] = token[i] && used_words[24*i+:24] != 0;

  rr_arbiter #(.N(PEERS), .IW(PW)) pointer (
      .clk(clk), .rst(rst), .req(active), .take(take), .grant(grant), .index(pick), .any(any)
  );

  always @(posedge clk) begin
    if (req_ready) req_valid <= 1'b0;
    if (take) begin
      req_valid <= 1'b1;
      req_peer <= pick;
      req_low <= picked[11:0];
      req_high <= picked[23:12];
      waiting <= 1'b1;
      waiting_peer <= pick;
      token <= token & ~grant;
    end
    if (res_valid && waiting && res_peer == waiting_peer) waiting <= 1'b0;
    if (token_return) token[token_peer] <= 1'b1;
    if (rst) begin
      token <= {PEERS{1'b1}};
      waiting <= 1'b0;
      req_valid <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk) if (!rst) assert (!(token_return && token[token_peer]));
`endif
endmodule

`default_nettype wire

// Output side, responses. Serves the pending requests round robin; a RES grants what the output FIFO has room for,
// then the burst and its trailing REQ are awaited before the next RES. grant_min_words holds the answer back until
// that much room is there (0: the paper's rule); high_first prefers requests with high-class bytes (an extension).
`default_nettype none

module response_scheduler #(
    parameter NICS = 4,
    parameter IW = $clog2(NICS)
) (
    input  wire          clk,
    input  wire          rst,
    input  wire [11:0]   grant_min_words,
    input  wire          high_first,
    input  wire [11:0]   free_words,      // of the fast output FIFO
    // Requests: stand-alone and trailing ones; occupancy in words, both zero if null.
    input  wire          req_valid,
    input  wire          req_trailing,
    input  wire [IW-1:0] req_source,
    input  wire [11:0]   req_high,
    input  wire [11:0]   req_low,
    // To the message channel.
    output reg           res_valid,
    input  wire          res_ready,
    output reg  [IW-1:0] res_dest,
    output reg  [11:0]   res_high,
    output reg  [11:0]   res_low
);
  localparam [1:0] IDLE = 2'd0, PICKED = 2'd1, SENDING = 2'd2, BURST = 2'd3;
  reg [1:0] state;
  reg [NICS-1:0] pending, has_high;
  reg [11:0] high[0:NICS-1];
  reg [11:0] low[0:NICS-1];

  wire [NICS-1:0] urgent = pending & has_high;
  wire [NICS-1:0] candidates = (high_first && urgent != 0) ? urgent : pending;
  wire [NICS-1:0] grant;
  wire [IW-1:0] pick;
  wire any;
  reg room;
  wire take = state == IDLE && any && room;
  rr_arbiter #(.N(NICS)) pointer (
      .clk(clk), .rst(rst), .req(candidates), .take(take), .grant(grant), .index(pick), .any(any)
  );
  wire [11:0] split_high, split_low;
  reg [11:0] asked_high, asked_low;  // by the request that was picked
  grant_split split (
      .req_high(asked_high), .req_low(asked_low), .free(free_words), .grant_high(split_high),
      .grant_low(split_low)
  );

  always @(posedge clk) begin
    room <= free_words >= grant_min_words;
    case (state)
      IDLE:
        if (take) begin
          res_dest <= pick;
          asked_high <= high[pick];
          asked_low <= low[pick];
          pending <= pending & ~grant;
          state <= PICKED;
        end
      PICKED: begin
        res_high <= split_high;
        res_low <= split_low;
        res_valid <= 1'b1;
        state <= SENDING;
      end
      SENDING:
        if (res_ready) begin
          res_valid <= 1'b0;
          state <= BURST;
        end
      default: if (req_valid && req_trailing) state <= IDLE;
    endcase
    if (req_valid) begin
      high[req_source] <= req_high;
      low[req_source] <= req_low;
      has_high[req_source] <= req_high != 0;
      pending[req_source] <= {req_high, req_low} != 0;
    end
    if (rst) begin
      state <= IDLE;
      pending <= 0;
      has_high <= 0;
      res_valid <= 1'b0;
      room <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  // One grant outstanding, and one token a peer: a trailing REQ comes from the peer that was answered, and a
  // stand-alone one never from a peer that already has a request here.
  always @(posedge clk)
    if (!rst && req_valid) begin
      assert (!req_trailing || (state == BURST && req_source == res_dest));
      assert (req_trailing || (!pending[req_source] && !(state != IDLE && req_source == res_dest)));
    end
`endif
endmodule

`default_nettype wire

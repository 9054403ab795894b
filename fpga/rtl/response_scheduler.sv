// SPDX-License-Identifier: MIT OR Apache-2.0
// Output side, responses. Picks one of the pending requests; a RES grants what the output FIFO has room for, then the
// burst and its trailing REQ are awaited before the next RES. A card that does not use its grant within four ticks, or
// cannot be told of it, loses it (`abandoned`): the others must not wait for it.
//
// Which request is picked: 0 round robin (the paper's); 1 round robin among those with high-class bytes, if there are
// any; 2 the one with the most high-class bytes, and the low class gets only room that no other request's high class
// has asked for; 3 surplus round robin (Adiseshu, Parulkar and Varghese, SIGCOMM 1996): a turn lasts for so many words.
//
// grant_min_words holds the answer back until that much room is there (0: the paper's rule), but not when the FIFO is
// empty, and for four ticks at most.
`default_nettype none

module response_scheduler #(
    parameter NICS = 4,
    parameter CAP_WORDS = 1920,   // of the output FIFO
    parameter IW = $clog2(NICS)
) (
    input  wire            clk,
    input  wire            rst,
    input  wire [11:0]     grant_min_words,
    input  wire [1:0]      policy,
    input  wire [11:0]     quantum_words,
    input  wire            tick,
    input  wire [11:0]     free_words,      // of the fast output FIFO
    // Requests, occupancy in words: stand-alone ones, and trailing ones from the card that is served (both zero if null).
    input  wire            alone_valid,
    input  wire [IW-1:0]   alone_source,
    input  wire [11:0]     alone_high,
    input  wire [11:0]     alone_low,
    input  wire            tail_valid,
    input  wire [11:0]     tail_high,
    input  wire [11:0]     tail_low,
    input  wire            word,            // of the burst that is awaited
    input  wire            stored,          // a word of it went into the FIFO
    // Cards whose requests are forgotten, because their link begins anew.
    input  wire [NICS-1:0] cancel,
    // To the message channel; a RES that is not taken yet is withdrawn if its request is forgotten.
    output reg             res_valid,
    input  wire            res_ready,
    input  wire            res_failed,      // the RES taken last did not reach the card
    output reg  [IW-1:0]   res_dest,
    output reg  [11:0]     res_high,
    output reg  [11:0]     res_low,
    // The card whose burst may come.
    output wire            serving,
    output reg             abandoned        // pulse: the grant of res_dest is taken back
);
  localparam [1:0] HIGH_FIRST = 2'd1, LONGEST_HIGH = 2'd2, SURPLUS = 2'd3;
  localparam [2:0] IDLE = 3'd0, SCAN = 3'd1, LIMIT = 3'd2, PICKED = 3'd3, SENDING = 3'd4, BURST = 3'd5, TURN = 3'd6;
  localparam [11:0] LARGEST = 12'd191;  // words of the longest packet with its header
  localparam [IW-1:0] LAST = IW'(NICS - 1);
  reg [2:0] state;
  reg [NICS-1:0] pending, has_high;
  reg [11:0] high[0:NICS-1];
  reg [11:0] low[0:NICS-1];
  assign serving = state == BURST;

  // Round robin, over those that the rule prefers.
  wire [NICS-1:0] asking = pending & ~cancel;
  wire [NICS-1:0] urgent = asking & has_high;
  wire [NICS-1:0] candidates = (policy == HIGH_FIRST && urgent != 0) ? urgent : asking;
  wire [NICS-1:0] grant;
  wire [IW-1:0] pick;
  wire any, take;
  rr_arbiter #(.N(NICS)) pointer (
      .clk(clk), .rst(rst), .req(candidates), .take(take), .grant(grant), .index(pick), .any(any)
  );

  // Room, or reason enough to answer without.
  reg room;
  reg [2:0] held;      // ticks
  reg [2:0] waited;    // ticks without a word of the burst
  wire begins = state == IDLE && any && room;

  // The turn that lasts: its card goes on while it has words left and asks for more.
  reg signed [12:0] surplus[0:NICS-1];
  wire signed [12:0] left = surplus[res_dest];
  wire goes_on = policy == SURPLUS && asking[res_dest] && left > 0;
  assign take = begins && policy != LONGEST_HIGH && !goes_on;

  // The scan for the longest backlog, once around from the card after the last.
  reg [IW-1:0] at, best;
  reg [11:0] best_high;
  reg [14:0] sum_high;
  reg found, round;
  wire better = asking[at] && (!found || high[at] > best_high);

  reg [11:0] asked_high, asked_low;  // by the request that was picked
  reg [15:0] reserved;               // high-class words of all requests
  reg [11:0] limit;                  // words that the burst may have
  wire [11:0] unreserved = (reserved >= {4'd0, free_words}) ? 12'd0 : free_words - reserved[11:0];
  wire [11:0] split_high, split_low;
  wire [11:0] bound = (policy == SURPLUS && limit < free_words) ? limit : free_words;
  grant_split split (
      .req_high(asked_high), .req_low(asked_low), .free(bound), .grant_high(split_high), .grant_low(split_low)
  );
  wire tail = tail_valid && serving;
  wire forgotten = state != IDLE && state != SCAN && cancel[res_dest];

  integer i;
  always_ff @(posedge clk) begin
    room <= free_words >= grant_min_words || free_words == CAP_WORDS[11:0] || held[2];
    if (begins || !any || state != IDLE) held <= 0;
    else if (tick && !held[2]) held <= held + 1'b1;
    abandoned <= 1'b0;
    case (state)
      IDLE: begin
        at <= (res_dest == LAST) ? {IW{1'b0}} : res_dest + 1'b1;
        found <= 1'b0;
        sum_high <= 0;
        round <= 1'b0;
        if (begins)
          if (policy == LONGEST_HIGH) state <= SCAN;
          else if (goes_on) begin
            asked_high <= high[res_dest];
            asked_low <= low[res_dest];
            pending[res_dest] <= 1'b0;
            state <= LIMIT;
          end else begin
            res_dest <= pick;
            asked_high <= high[pick];
            asked_low <= low[pick];
            pending <= pending & ~grant;
            state <= (policy == SURPLUS) ? TURN : PICKED;
          end
      end
      SCAN: begin
        at <= (at == LAST) ? {IW{1'b0}} : at + 1'b1;
        if (pending[at]) sum_high <= sum_high + {3'd0, high[at]};
        if (better) begin
          found <= 1'b1;
          best <= at;
          best_high <= high[at];
        end
        // Around, and one more cycle to take what was found.
        if (at == res_dest) round <= 1'b1;
        if (round) begin
          state <= found ? LIMIT : IDLE;
          if (found) begin
            res_dest <= best;
            asked_high <= high[best];
            asked_low <= low[best];
            pending[best] <= 1'b0;
            reserved <= {1'b0, sum_high};
            if (cancel[best] || !pending[best]) state <= IDLE;
          end
        end
      end
      TURN: begin
        surplus[res_dest] <= ((left >= 0) ? 13'sd0 : left) + $signed({1'b0, quantum_words});
        state <= LIMIT;
      end
      LIMIT: begin
        // At least a packet, so that a turn does not end in an empty burst.
        limit <= (left > 0) ? left[11:0] + LARGEST - 12'd1 : LARGEST;
        if (policy == LONGEST_HIGH && asked_low > unreserved) asked_low <= unreserved;
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
          waited <= 0;
          state <= BURST;
        end
      default: begin
        if (word) waited <= 0;
        else if (tick) waited <= waited + 1'b1;
        if (stored) surplus[res_dest] <= surplus[res_dest] - 13'sd1;
        if (tail) begin
          state <= IDLE;
          if ({tail_high, tail_low} == 0) surplus[res_dest] <= 0;
        end else if (waited[2] || res_failed) begin
          abandoned <= 1'b1;
          state <= IDLE;
        end
      end
    endcase
    if (forgotten) begin
      res_valid <= 1'b0;
      state <= IDLE;
    end
    if (alone_valid) begin
      high[alone_source] <= alone_high;
      low[alone_source] <= alone_low;
      has_high[alone_source] <= alone_high != 0;
      pending[alone_source] <= {alone_high, alone_low} != 0;
    end
    if (tail) begin
      high[res_dest] <= tail_high;
      low[res_dest] <= tail_low;
      has_high[res_dest] <= tail_high != 0;
      pending[res_dest] <= {tail_high, tail_low} != 0;
    end
    for (i = 0; i < NICS; i = i + 1) if (cancel[i]) begin
      pending[i] <= 1'b0;
      surplus[i] <= 0;
    end
    if (rst) begin
      state <= IDLE;
      pending <= 0;
      has_high <= 0;
      res_valid <= 1'b0;
      res_dest <= 0;
      room <= 1'b0;
      held <= 0;
      abandoned <= 1'b0;
      for (i = 0; i < NICS; i = i + 1) surplus[i] <= 0;
    end
  end

`ifdef ASSERTIONS
  // One token a peer: a stand-alone REQ never comes from a peer that already has a request here.
  always @(posedge clk)
    if (!rst && alone_valid) assert (!pending[alone_source] && !(state > SCAN && alone_source == res_dest));
  // The low class leaves the room that the high class has asked for.
  reg limited;
  always @(posedge clk) begin
    limited <= !rst && state == LIMIT && policy == LONGEST_HIGH;
    if (!rst && limited && state == PICKED) assert (asked_low <= unreserved);
  end
`endif
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// Bus master: address, attribute and response phase, then a word a cycle; no waiting in between. A target that
// disconnects does so at a 128-byte boundary, and the rest is asked for again as a new sequence. A read ends with the
// split response; its data come later as somebody else's write (a split completion), except for the immediate read of
// one register.
//
// Whether a word has arrived is known two cycles after it was on the bus: the target keeps devsel high in the cycle after
// it, and nobody complains of its parity in the one after that. The first word that has not arrived ends the sequence;
// none that follows counts, wherever it went.
`default_nettype none

module pcix_master (
    input  wire        clk,
    input  wire        rst,
    input  wire [3:0]  id,            // goes into the attribute phase, so that completions find the way back
    input  wire [3:0]  tag,           // likewise: which read it is
    input  wire        start,
    input  wire [3:0]  cmd,
    input  wire [31:0] addr,
    input  wire [9:0]  words,
    input  wire [63:0] data,          // first word falls through
    output wire        pop,
    output reg         accept,        // pulse: the oldest word popped and not yet accepted has arrived
    output reg         done,
    output reg         error,         // with done: not all words have arrived
    output reg         aborted,       // with done: because nobody answered, or the target stopped
    output reg         disconnected,  // pulse
    output reg         parity,        // pulse: the target complained
    output reg  [63:0] read_data,     // of an immediate read, with done
    // Bus.
    output reg         req,
    input  wire        gnt,
    output reg         frame_o,
    output reg         irdy_o,
    output reg  [3:0]  cmd_o,
    output reg  [63:0] ad_o,
    output reg         par_o,         // even parity of cmd and ad, a cycle later
    input  wire        devsel_i,
    input  wire        trdy_i,
    input  wire        disconnect_i,
    input  wire [63:0] ad_i,
    input  wire        par_i,
    input  wire        perr_i
);
  localparam [2:0] IDLE = 3'd0, WAIT = 3'd1, ATTR = 3'd2, RESP = 3'd3, DATA = 3'd4, READ = 3'd5, STATUS = 3'd6;
  localparam [6:0] RESPONSE_CYCLES = 7'd7, READ_CYCLES = 7'd95;
  reg [2:0] state;
  reg [31:0] cur_addr;
  reg [9:0] left;      // words not yet on the bus
  reg [3:0] command;
  reg [6:0] patience;
  wire writes = command == pcix_pkg::CMD_WRITE || command == pcix_pkg::CMD_SPLIT;

  // The words on their way: on the bus; a cycle later, devsel told; two cycles later, parity too.
  reg told_1, told_2, taken_2;
  reg stopped, spoilt;   // the target did not take a word; it took one with wrong parity
  wire stops = told_1 && !devsel_i;
  wire spoils = told_2 && taken_2 && perr_i;
  wire fails = stops || spoils || stopped || spoilt;
  // The word on the bus is the last before a boundary, and the target wants to stop there.
  wire boundary = disconnect_i && cur_addr[6:3] == 4'd15;
  wire finished = state == DATA && (left == 0 || boundary || fails);
  assign pop = (state == RESP && devsel_i && writes) || (state == DATA && !finished);
  reg read_par;
  reg rest;   // to be asked for again

  always_ff @(posedge clk) begin
    done <= 1'b0;
    error <= 1'b0;
    aborted <= 1'b0;
    disconnected <= 1'b0;
    told_1 <= state == DATA;
    told_2 <= told_1;
    taken_2 <= devsel_i;
    accept <= told_2 && taken_2 && !perr_i && !stopped && !spoilt;
    parity <= spoils && !stopped && !spoilt;
    if (stops) stopped <= 1'b1;
    if (spoils) spoilt <= 1'b1;
    par_o <= frame_o ? ^{cmd_o, ad_o} : 1'b0;
    case (state)
      IDLE: begin
        stopped <= 1'b0;
        spoilt <= 1'b0;
        if (start) begin
          cur_addr <= addr;
          left <= words;
          command <= cmd;
          req <= 1'b1;
          state <= WAIT;
        end
      end
      WAIT:
        if (gnt) begin
          req <= 1'b0;
          frame_o <= 1'b1;
          cmd_o <= command;
          ad_o <= {32'd0, cur_addr};
          state <= ATTR;
        end
      ATTR: begin
        ad_o <= {40'd0, tag, id, 3'd0, left, 3'd0};
        patience <= 0;
        state <= RESP;
      end
      RESP: begin
        ad_o <= 0;
        patience <= patience + 1'b1;
        if (devsel_i) begin
          patience <= 0;
          if (writes) begin
            irdy_o <= 1'b1;
            ad_o <= data;
            left <= left - 1'b1;
            state <= DATA;
          end else if (command == pcix_pkg::CMD_READ_DWORD) state <= READ;
          else begin
            frame_o <= 1'b0;
            done <= 1'b1;
            state <= IDLE;
          end
        end else if (patience == RESPONSE_CYCLES) begin
          frame_o <= 1'b0;
          done <= 1'b1;
          error <= 1'b1;
          aborted <= 1'b1;
          state <= IDLE;
        end
      end
      DATA: begin
        cur_addr <= cur_addr + 32'd8;
        rest <= left != 0;
        if (finished) begin
          frame_o <= 1'b0;
          irdy_o <= 1'b0;
          ad_o <= 0;
          state <= STATUS;
        end else begin
          ad_o <= data;
          left <= left - 1'b1;
        end
      end
      STATUS:
        if (!told_1 && !told_2) begin
          if (!rest || stopped || spoilt) begin
            done <= 1'b1;
            error <= stopped || spoilt;
            aborted <= stopped;
            state <= IDLE;
          end else begin
            disconnected <= 1'b1;
            req <= 1'b1;
            state <= WAIT;
          end
        end
      default: begin
        // The value, then its parity.
        patience <= patience + 1'b1;
        read_par <= ^{cmd_o, ad_i};
        if (trdy_i) begin
          read_data <= ad_i;
          frame_o <= 1'b0;
        end
        if (!frame_o || patience == READ_CYCLES) begin
          frame_o <= 1'b0;
          done <= 1'b1;
          error <= frame_o || read_par != par_i;
          aborted <= frame_o;
          state <= IDLE;
        end
      end
    endcase
    if (!frame_o && state != WAIT) cmd_o <= 0;
    if (rst) begin
      state <= IDLE;
      req <= 1'b0;
      frame_o <= 1'b0;
      irdy_o <= 1'b0;
      ad_o <= 0;
      cmd_o <= 0;
      par_o <= 1'b0;
      done <= 1'b0;
      accept <= 1'b0;
      parity <= 1'b0;
      told_1 <= 1'b0;
      told_2 <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk) if (!rst) assert (!(start && state != IDLE));
`endif
endmodule

`default_nettype wire

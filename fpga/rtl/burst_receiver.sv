// SPDX-License-Identifier: MIT OR Apache-2.0
// Output side of bursts: checks them word by word, passes the packets of the card that has a grant to the fast output
// FIFO and its trailing REQ to the response scheduler. Every source has its own place in its burst, because a card that
// has lost its grant may still send: its packets are counted and thrown away. After a word that is wrong the rest of the
// burst is ignored, and the source is told by a NAK; the card that sent it counts what it did not bring over.
`default_nettype none

module burst_receiver #(
    parameter NICS = 4,
    parameter IW = $clog2(NICS)
) (
    input  wire          clk,
    input  wire          rst,
    input  wire [2:0]    own_id,
    input  wire          wr_valid,      // a word in the burst area
    input  wire          wr_error,      // with wrong parity
    input  wire [IW-1:0] wr_source,
    input  wire          wr_first,      // at the first place of the source's window
    input  wire [63:0]   wr_data,
    // The card that has a grant, and how much.
    input  wire          serving,
    input  wire [IW-1:0] serving_source,
    input  wire [12:0]   granted_words,
    output reg           out_valid,
    output reg  [63:0]   out_data,
    output reg           out_last,      // last word of a packet
    output reg           word,          // pulse: of the burst that was granted
    output reg           tail_valid,
    output reg  [11:0]   tail_high,
    output reg  [11:0]   tail_low,
    output reg           stale_packet,  // pulse: one of a burst without grant
    output reg           broken,        // pulse: what this source sends makes no sense here
    output reg  [IW-1:0] broken_source,
    output reg           protocol_error // pulse: and that for no fault of the bus
);
  localparam [2:0] HEADER = 3'd0, PKT = 3'd1, DATA = 3'd2, TAIL = 3'd3, IGNORE = 3'd4;

  // The place of the source: state, stale, words up to the trailing REQ, words of the packet.
  wire [23:0] place;
  reg [NICS-1:0] known;  // after the reset there is none
  reg [23:0] next;
  reg [2:0] state;
  lutram_1r1w #(.W(24), .AW(IW)) places (
      .wr_clk(clk), .wr_en(wr_valid), .wr_addr(wr_source), .wr_data(next), .rd_addr(wr_source), .rd_data(place)
  );
  wire was_stale = place[20];
  wire [11:0] left = place[19:8];
  wire [7:0] packet_left = place[7:0];
  wire served = serving && serving_source == wr_source;
  // The rest of a burst of an earlier grant is not of this one.
  reg begun;
  wire stale = !served || (!wr_first && (was_stale || !begun));

  wire [3:0] kind = wr_data[63:60];
  wire ours = wr_data[55:52] == {{(4 - IW){1'b0}}, wr_source} && wr_data[51:48] == {1'b0, own_id};
  wire [7:0] data_words = wr_data[10:3] + {7'd0, wr_data[2:0] != 0};
  wire header_ok = kind == nic_pkg::MSG_BURST && ours && (stale || {1'b0, wr_data[11:0]} <= granted_words);
  wire packet_ok = kind == nic_pkg::MSG_PKT && ours && data_words != 0 && data_words <= 8'd190
      && {4'd0, data_words} < left;
  wire tail_ok = kind == nic_pkg::MSG_REQ && wr_data[59] && ours;
  wire last_word = packet_left == 8'd1;
  reg wrong;

  always_comb begin
    state = !known[wr_source] ? HEADER : place[23:21];
    wrong = wr_error;
    next = {state, stale, left - 1'b1, packet_left - 1'b1};
    if (wr_first) begin
      wrong = wr_error || !header_ok;
      next = {(wr_data[11:0] == 0) ? TAIL : PKT, stale, wr_data[11:0], 8'd0};
    end else
      case (state)
        PKT: begin
          wrong = wr_error || !packet_ok;
          next[23:21] = DATA;
          next[7:0] = data_words;
        end
        DATA: if (last_word) next[23:21] = (left == 12'd1) ? TAIL : PKT;
        TAIL: begin
          wrong = wr_error || !tail_ok;
          next[23:21] = HEADER;
        end
        HEADER: wrong = 1'b1;
        default: wrong = 1'b0;
      endcase
    if (wrong) next[23:21] = IGNORE;
  end

  wire takes = wr_valid && !wrong && !wr_first;
  always_ff @(posedge clk) begin
    out_data <= wr_data;
    out_valid <= takes && !stale && (state == PKT || state == DATA);
    out_last <= state == DATA && last_word;
    word <= wr_valid && !wrong && served && !stale;
    tail_valid <= takes && !stale && state == TAIL;
    tail_high <= wr_data[30:19];
    tail_low <= wr_data[14:3];
    stale_packet <= takes && stale && state == DATA && last_word;
    // A stale burst is told of when its trailing REQ has come.
    broken <= wr_valid && (wrong || (stale && !wr_first && state == TAIL));
    broken_source <= wr_source;
    protocol_error <= wr_valid && wrong && !wr_error;
    if (wr_valid) known[wr_source] <= 1'b1;
    if (!serving) begun <= 1'b0;
    else if (wr_valid && wr_first && served) begun <= 1'b1;
    if (rst) begin
      known <= 0;
      begun <= 1'b0;
      out_valid <= 1'b0;
      word <= 1'b0;
      tail_valid <= 1'b0;
      stale_packet <= 1'b0;
      broken <= 1'b0;
      protocol_error <= 1'b0;
    end
  end
endmodule

`default_nettype wire

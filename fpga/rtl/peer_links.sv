// SPDX-License-Identifier: MIT OR Apache-2.0
// The links to the peers. A link is what lets this card send to a peer: it is established by a SYNC and the peer's ACK,
// which make both forget what was between them, and established anew after any failure: a message or a burst that did
// not arrive, a RES that did not come for 32 ticks, a NAK, the driver's wish. If the SYNC is not answered within three
// ticks the peer is down: its input FIFOs are emptied, its traffic takes the slow path, and it is tried again every 32
// ticks, or at once when it says NAK, as a card does when it is enabled.
//
// In the other direction a peer is heard only after its SYNC, until it breaks the rules or loses its grant; it is then
// told so by a NAK.
//
// All of a card's messages go through one channel in order, and a SYNC is sent only when nothing of this card's is on
// its way to the peer. So nothing from before a SYNC can arrive after it, and nothing from before an ACK after that.
`default_nettype none

module peer_links #(
    parameter PEERS = 3,
    parameter PW = $clog2(PEERS)
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             enable,
    input  wire [PEERS-1:0] present,
    input  wire             tick,
    input  wire [PEERS-1:0] resync,
    // What of this card's is on its way to a peer.
    input  wire [PEERS-1:0] busy,
    input  wire [PEERS-1:0] owed,         // a REQ was sent, its RES has not come
    // What failed, pulses.
    input  wire             burst_failed,
    input  wire [PW-1:0]    burst_peer,
    input  wire [PEERS-1:0] breaks,       // what the peer sends makes no sense, or it has lost its grant
    // Messages received.
    input  wire             got_sync,
    input  wire             got_ack,
    input  wire             got_nak,
    input  wire [PW-1:0]    got_peer,
    // Messages to send: one waits until it is taken; then how the one taken last fared.
    output reg              msg_valid,
    input  wire             msg_ready,
    output reg  [3:0]       msg_type,
    output reg  [PW-1:0]    msg_peer,
    input  wire             sent_valid,
    input  wire             sent_failed,
    input  wire [3:0]       sent_type,
    input  wire [PW-1:0]    sent_peer,
    // States.
    output reg  [PEERS-1:0] live,         // frames can go there
    output wire [PEERS-1:0] ready,        // REQs can
    output reg  [PEERS-1:0] clear,        // pulse: the exchange begins anew
    output wire [PEERS-1:0] flush,        // the peer's input FIFOs are to be empty
    output reg  [PEERS-1:0] heard,        // the peer's REQs count
    output reg  [PEERS-1:0] forget,       // pulse: what the peer asked for is void
    output reg              anew,         // pulse: a link is established anew
    output reg              lost,         // pulse: a peer went down
    output wire [2*PEERS-1:0] states
);
  localparam [1:0] DOWN = 2'd0, CLOSING = 2'd1, SYNC = 2'd2, UP = 2'd3;
  localparam [5:0] LONG = 6'd32;
  reg [1:0] state[0:PEERS-1];
  reg [5:0] age[0:PEERS-1];    // ticks in this state, or since the REQ
  reg [PEERS-1:0] sync_due, ack_due, nak_due, waiting;
  reg [PEERS-1:0] taken, acked;   // the SYNC is on its way; it has been answered, which may be known before it is known
                                  // to have arrived

  genvar g;
  generate
    for (g = 0; g < PEERS; g = g + 1) begin : peers
      assign ready[g] = state[g] == UP;
      assign flush[g] = !live[g] && state[g] != UP && !busy[g];
      assign states[2*g+:2] = state[g];
    end
  endgenerate

  // The next message: ACKs before NAKs before SYNCs, the lowest peer first.
  reg [3:0] next_type;
  reg [PW-1:0] next_peer;
  reg next_valid;
  integer n;
  always_comb begin
    next_valid = 1'b0;
    next_type = nic_pkg::MSG_SYNC;
    next_peer = 0;
    for (n = PEERS - 1; n >= 0; n = n - 1)
      if (sync_due[n]) {next_valid, next_type, next_peer} = {1'b1, nic_pkg::MSG_SYNC, n[PW-1:0]};
    for (n = PEERS - 1; n >= 0; n = n - 1)
      if (nak_due[n] && present[n]) {next_valid, next_type, next_peer} = {1'b1, nic_pkg::MSG_NAK, n[PW-1:0]};
    for (n = PEERS - 1; n >= 0; n = n - 1)
      if (ack_due[n]) {next_valid, next_type, next_peer} = {1'b1, nic_pkg::MSG_ACK, n[PW-1:0]};
  end

  integer i;
  reg [PEERS-1:0] failed;
  always_comb
    for (i = 0; i < PEERS; i = i + 1)
      failed[i] = resync[i] || (burst_failed && burst_peer == i[PW-1:0])
          || (sent_valid && sent_failed && sent_type == nic_pkg::MSG_REQ && sent_peer == i[PW-1:0])
          || (got_nak && got_peer == i[PW-1:0]) || (owed[i] && age[i] >= LONG);

  integer k;
  always_ff @(posedge clk) begin
    clear <= 0;
    forget <= 0;
    anew <= 1'b0;
    lost <= 1'b0;
    for (k = 0; k < PEERS; k = k + 1) begin
      if (tick && age[k] != 6'd63) age[k] <= age[k] + 1'b1;
      // Towards the peer.
      case (state[k])
        DOWN: begin
          live[k] <= 1'b0;
          if (got_nak && got_peer == k[PW-1:0]) age[k] <= LONG;
          if (age[k] >= LONG) state[k] <= CLOSING;
        end
        CLOSING:
          if (!busy[k]) begin
            clear[k] <= 1'b1;
            sync_due[k] <= 1'b1;
            waiting[k] <= 1'b0;
            taken[k] <= 1'b0;
            acked[k] <= 1'b0;
            state[k] <= SYNC;
          end
        SYNC: begin
          if (msg_valid && msg_ready && msg_type == nic_pkg::MSG_SYNC && msg_peer == k[PW-1:0]) taken[k] <= 1'b1;
          if (taken[k] && got_ack && got_peer == k[PW-1:0]) acked[k] <= 1'b1;
          if (sent_valid && sent_type == nic_pkg::MSG_SYNC && sent_peer == k[PW-1:0]) begin
            waiting[k] <= 1'b1;
            age[k] <= 0;
          end
          if ((waiting[k] && age[k] >= 6'd3)
              || (sent_valid && sent_failed && sent_type == nic_pkg::MSG_SYNC && sent_peer == k[PW-1:0])) begin
            if (live[k]) lost <= 1'b1;
            age[k] <= 0;
            state[k] <= DOWN;
          end else if (waiting[k] && acked[k]) begin
            live[k] <= 1'b1;
            state[k] <= UP;
          end
        end
        default: begin
          if (!owed[k]) age[k] <= 0;
          if (failed[k]) begin
            anew <= 1'b1;
            state[k] <= CLOSING;
          end
        end
      endcase
      // From the peer.
      if (breaks[k]) begin
        heard[k] <= 1'b0;
        forget[k] <= 1'b1;
        nak_due[k] <= 1'b1;
      end
      if (got_sync && got_peer == k[PW-1:0]) begin
        heard[k] <= 1'b1;
        forget[k] <= 1'b1;
        ack_due[k] <= 1'b1;
        nak_due[k] <= 1'b0;
      end
    end
    // A message of before its peer was taken out is not one of after.
    if (msg_valid && (msg_ready || !present[msg_peer])) msg_valid <= 1'b0;
    else if (!msg_valid && next_valid && present[next_peer]) begin
      msg_valid <= 1'b1;
      msg_type <= next_type;
      msg_peer <= next_peer;
      // Not again, unless it is due again in this very cycle.
      case (next_type)
        nic_pkg::MSG_SYNC: sync_due[next_peer] <= 1'b0;
        nic_pkg::MSG_ACK: if (!(got_sync && got_peer == next_peer)) ack_due[next_peer] <= 1'b0;
        default: if (!breaks[next_peer]) nak_due[next_peer] <= 1'b0;
      endcase
    end
    for (k = 0; k < PEERS; k = k + 1)
      if (rst || !enable || !present[k]) begin
        // Down, and tried at once when that is over. A card that was enabled knows of nothing, and says so.
        state[k] <= DOWN;
        live[k] <= 1'b0;
        age[k] <= LONG;
        sync_due[k] <= 1'b0;
        ack_due[k] <= 1'b0;
        nak_due[k] <= 1'b1;
        waiting[k] <= 1'b0;
        heard[k] <= 1'b0;
        forget[k] <= 1'b1;
      end
    if (rst || !enable) begin
      msg_valid <= 1'b0;
      lost <= 1'b0;
    end
  end
endmodule

`default_nettype wire

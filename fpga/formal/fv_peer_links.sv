// SPDX-License-Identifier: MIT OR Apache-2.0
// The links to two peers, with ticks, failures and messages at will, a driver that takes peers out and stops the card at
// any time; the environment begins something towards a peer only while its link is up, and one message at a time is on its
// way. Towards a peer: a link is up only after a SYNC that has arrived and an ACK that came after the SYNC was sent; from
// the failure of a link until it is up again nothing is asked for, and what was between the two is forgotten, and its SYNC
// goes, when nothing is on its way. From a peer: what breaks the rules is not heard before the next
// SYNC; every SYNC is answered by an ACK, before anything but other ACKs, and no NAK goes for what was before it.
module fv_peer_links (
    input wire       clk,
    input wire       enable,
    input wire [1:0] present,
    input wire       tick,
    input wire [1:0] resync,
    input wire [1:0] begins,
    input wire [1:0] ends,
    input wire [1:0] owed,
    input wire       burst_failed,
    input wire       burst_peer,
    input wire [1:0] breaks,
    input wire [2:0] got,
    input wire       got_peer,
    input wire       takes,
    input wire       over,
    input wire       fails
);
  reg rst = 1'b1;
  always @(posedge clk) rst <= 1'b0;
  (* anyconst *) reg who;
  wire msg_valid, msg_peer;
  wire [3:0] msg_type;
  wire [1:0] live, ready, clear, flush, heard, forget;
  wire [3:0] states;
  reg on_way = 1'b0, way_peer;
  reg [3:0] way_type;
  wire msg_ready = takes && !on_way && msg_valid;
  wire sent = on_way && over;
  // What else is on its way: bursts and REQs.
  reg [1:0] other = 0;
  wire [1:0] busy = other | (on_way ? 2'd1 << way_peer : 2'd0);
  wire got_sync = got[0], got_ack = !got[0] && got[1], got_nak = !got[0] && !got[1] && got[2];
  peer_links #(.PEERS(2)) dut (
      .clk(clk), .rst(rst), .enable(enable), .present(present), .tick(tick), .resync(resync), .busy(busy), .owed(owed),
      .burst_failed(burst_failed), .burst_peer(burst_peer), .breaks(breaks), .got_sync(got_sync), .got_ack(got_ack),
      .got_nak(got_nak), .got_peer(got_peer), .msg_valid(msg_valid), .msg_ready(msg_ready), .msg_type(msg_type),
      .msg_peer(msg_peer), .sent_valid(sent), .sent_failed(fails), .sent_type(way_type), .sent_peer(way_peer),
      .live(live), .ready(ready), .clear(clear), .flush(flush), .heard(heard), .forget(forget), .states(states)
  );
  wire off = rst || !enable || !present[who];
  reg syncs = 1'b0;       // a SYNC to `who` is on its way
  reg synced = 1'b0;      // it has arrived
  reg acked = 1'b0;       // and an ACK came since it was taken
  reg was_ready = 1'b0, was_off = 1'b1, broke = 1'b0, was_heard = 1'b0, was_sync = 1'b0;
  reg owes = 1'b0, owed_ack = 1'b0;         // an ACK to `who`; and so it was a cycle ago
  reg may_nak = 1'b1, could_nak = 1'b1;     // there is a reason for a NAK to `who`; likewise
  reg was_valid = 1'b0;
  reg [1:0] was_present = 0;
  wire offers = msg_valid && !was_valid;
  always @(posedge clk) begin
    // What is on its way is not stopped with the card.
    other <= rst ? 2'd0 : (other & ~ends) | (begins & ready);
    if (msg_ready) begin
      on_way <= 1'b1;
      way_peer <= msg_peer;
      way_type <= msg_type;
    end else if (sent) on_way <= 1'b0;
    if (!rst && clear[who]) assert (!other[who]);
    // Towards the peer.
    if (msg_ready && msg_type == nic_pkg::MSG_SYNC && msg_peer == who) begin
      syncs <= 1'b1;
      synced <= 1'b0;
      acked <= 1'b0;
      if (!off) assert (!other[who] && !ready[who]);
    end else begin
      if (syncs && sent && way_peer == who && way_type == nic_pkg::MSG_SYNC) {syncs, synced} <= {1'b0, !fails};
      if ((syncs || synced) && got_ack && got_peer == who) acked <= 1'b1;
    end
    if (off) {syncs, synced, acked} <= 3'd0;
    was_ready <= ready[who];
    was_off <= off;
    if (!rst && !off && !was_off && ready[who] && !was_ready) assert (synced && acked && live[who] && !other[who]);
    if (!rst && !was_off && flush[who]) assert (!ready[who] && !live[who] && !busy[who]);
    if (!rst && was_off) assert (!ready[who] && !heard[who] && !live[who]);
    // From the peer.
    broke <= breaks[who] && !(got_sync && got_peer == who);
    was_sync <= got_sync && got_peer == who;
    was_heard <= heard[who];
    was_valid <= msg_valid;
    was_present <= present;
    owed_ack <= owes;
    could_nak <= may_nak;
    if (offers && msg_type == nic_pkg::MSG_ACK && msg_peer == who && !was_sync) owes <= 1'b0;
    if (got_sync && got_peer == who) owes <= 1'b1;
    if (breaks[who]) may_nak <= 1'b1;
    if (got_sync && got_peer == who) may_nak <= 1'b0;
    if (off) {owes, owed_ack, may_nak} <= 3'b001;
    if (!rst && !was_off && !off) begin
      if (owed_ack && !was_valid && &was_present) assert (msg_valid && msg_type == nic_pkg::MSG_ACK);
      if (offers && msg_type == nic_pkg::MSG_NAK && msg_peer == who) assert (could_nak);
      if (broke) assert (!heard[who] && forget[who]);
      if (was_sync) assert (heard[who] && forget[who]);
      if (heard[who] && !was_heard) assert (was_sync);
    end
  end
endmodule

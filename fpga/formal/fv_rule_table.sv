// SPDX-License-Identifier: MIT OR Apache-2.0
// Any table in either bank, any header: the decision is that of the lowest route that matches, and comes in time. Fast only
// for what may be forwarded, to another card that can be reached, away from the edges of its prefix; class by the rule of
// the card it goes to.
module fv_rule_table (
    input wire       clk,
    input wire       starts,
    input wire       commits,
    input wire       is_valid
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg forwardable, is_ipv4, ttl_expired, checksum_ok;
  (* anyconst *) reg [79:0] key;
  (* anyconst *) reg [1:0] own;
  (* anyconst *) reg [3:0] up;
  wire done, fast, drop_ttl, drop_checksum, no_port, high, rd_done;
  wire [2:0] dest, policy, status, policy_written;
  wire [4:0] entry;
  wire [47:0] mac_data;
  wire [63:0] rd_data;
  reg busy = 1'b0;
  reg [4:0] age;
  wire start = starts && !busy && !rst;
  wire commit = commits && !rst;
  rule_table dut (
      .clk(clk), .rst(rst), .start(start), .forwardable(forwardable), .is_ipv4(is_ipv4), .ttl_expired(ttl_expired),
      .checksum_ok(checksum_ok), .key(key), .done(done), .fast(fast), .drop_ttl(drop_ttl),
      .drop_checksum(drop_checksum), .no_port(no_port), .dest(dest), .high(high), .entry(entry), .policy(policy),
      .own_id({1'b0, own}), .up(up), .mac_addr(6'd0), .mac_busy(1'b0), .mac_data(mac_data), .wr_rule(commit),
      .wr_commit(commit), .wr_policy(1'b0), .wr_word(7'd0), .wr_data({63'd0, is_valid}), .rd_rule(1'b0), .rd_word(7'd0),
      .rd_done(rd_done), .rd_data(rd_data), .status(status), .policy_written(policy_written)
  );
  (* hierconn *) wire [1023:0] \dut.routes[0].compared.content , \dut.routes[1].compared.content ;
  (* hierconn *) wire [95:0] \dut.routes[0].leads.content , \dut.routes[1].leads.content ;
  (* hierconn *) wire [511:0] \dut.values.content , \dut.masks.content ;
  (* hierconn *) wire [135:0] \dut.enables.content ;
  (* hierconn *) wire [127:0] \dut.masks_high.content ;
  wire [1023:0] even = \dut.routes[0].compared.content , odd = \dut.routes[1].compared.content ;
  wire [95:0] even_leads = \dut.routes[0].leads.content , odd_leads = \dut.routes[1].leads.content ;
  wire [511:0] values = \dut.values.content , masks = \dut.masks.content ;
  wire [135:0] enables = \dut.enables.content ;
  wire [127:0] masks_high = \dut.masks_high.content ;
  reg bank, valid;
  wire [31:0] dst = key[39:8];
  // What the table says.
  reg found, host;
  reg [3:0] first;
  reg [2:0] card;
  reg [31:0] value, mask;
  reg [5:0] lead;
  integer i;
  always @* begin
    found = 1'b0;
    host = 1'b0;
    first = 0;
    card = 0;
    for (i = 15; i >= 0; i = i - 1) begin
      {mask, value} = i[0] ? odd[64*{bank, i[3:1]}+:64] : even[64*{bank, i[3:1]}+:64];
      lead = i[0] ? odd_leads[6*{bank, i[3:1]}+:6] : even_leads[6*{bank, i[3:1]}+:6];
      if (lead[5] && (dst & mask) == (value & mask)) begin
        found = 1'b1;
        first = i[3:0];
        card = lead[2:0];
        host = lead[3] || (lead[4] && ((dst & ~mask) == 0 || (dst & ~mask) == ~mask));
      end
    end
  end
  wire routed = forwardable && checksum_ok && valid && found && !host && card != {1'b0, own};
  wire reached = !card[2] && up[card[1:0]];
  wire goes = routed && reached && !ttl_expired;
  wire [2:0] at = {bank, goes ? card[1:0] : own};
  wire [79:0] class_value = {enables[17*at+:16], values[64*at+:64]};
  wire [79:0] class_mask = {masks_high[16*at+:16], masks[64*at+:64]};
  wire is_high = enables[17*at+16] && valid && is_ipv4 && ((key ^ class_value) & class_mask) == 0;
  always @(posedge clk) if (!rst) begin
    age <= age + 1'b1;
    if (start) begin
      busy <= 1'b1;
      age <= 0;
      bank <= status[2];
      valid <= status[0];
    end
    if (done) begin
      busy <= 1'b0;
      assert (busy && fast == goes && drop_ttl == (routed && reached && ttl_expired));
      assert (no_port == (routed && !reached));
      assert (dest == (goes ? card : {1'b0, own}) && high == is_high);
      if (fast) assert (entry == {bank, first});
      assert (!drop_checksum);
    end
    // Frames begin no closer than eighteen cycles.
    assert (!busy || age <= 14);
`ifdef REACH
    // The last route of the second bank.
    assert (!(done && fast && entry == 5'd31));
`endif
  end
endmodule

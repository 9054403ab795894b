// SPDX-License-Identifier: MIT OR Apache-2.0
// Frames far enough apart, and a driver that writes, commits and reads at any time. Of the memories two routes that are
// compared at once, a class rule and an address are kept, any ones; whatever holds of these, holds of all.
//
// A route that matches is found unless a lower one is, what is found matches, and the decision is what the route and the
// policy say; the class is that of the destination's rule; nothing changes while a frame is looked up; what is read is
// what was written.
module fv_rule_table (
    input wire        clk,
    input wire        begins,
    input wire        forwardable_in,
    input wire        is_ipv4_in,
    input wire        ttl_expired_in,
    input wire        checksum_in,
    input wire [79:0] key_in,
    input wire        early,
    input wire [5:0]  mac_addr,
    input wire        mac_busy,
    input wire        wr_rule_in,
    input wire        wr_commit,
    input wire        wr_policy,
    input wire [6:0]  wr_word,
    input wire [63:0] wr_data,
    input wire        reads,
    input wire [6:0]  rd_word_in
);
  localparam LONGEST = 14;   // cycles from start to decision
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg [2:0] own_id;
  (* anyconst *) reg [3:0] up;

  // Frames: the MAC keeps them apart.
  reg [4:0] age = 31;
  wire start = begins && age >= LONGEST + 2 && !rst;
  reg forwardable_r, is_ipv4_r, ttl_expired_r, checksum_r;
  reg [79:0] key_r;
  wire forwardable = start ? forwardable_in : forwardable_r;
  wire is_ipv4 = start ? is_ipv4_in : is_ipv4_r;
  wire ttl_expired = start ? ttl_expired_in : ttl_expired_r;
  wire [79:0] key = start ? key_in : key_r;
  wire checksum_ok = (start || age == 0) ? early : checksum_r;
  always @(posedge clk) begin
    if (start) begin
      age <= 0;
      {forwardable_r, is_ipv4_r, ttl_expired_r, checksum_r} <= {forwardable_in, is_ipv4_in, ttl_expired_in, checksum_in};
      key_r <= key_in;
    end else if (age != 31) age <= age + 1'b1;
  end

  // Reads are held until they are done, and are not of what is being written.
  reg reading = 1'b0;
  reg [6:0] rd_word;
  wire rd_done;
  wire wr_rule = wr_rule_in && !reading && !rst;
  always @(posedge clk) begin
    if (rst || rd_done) reading <= 1'b0;
    else if (reads && !reading) {reading, rd_word} <= {1'b1, rd_word_in};
  end

  wire done, fast, drop_ttl, drop_checksum, no_port, high;
  wire [2:0] dest, policy, status, policy_written;
  wire [4:0] entry;
  wire [47:0] mac_data;
  wire [63:0] rd_data;
  rule_table dut (
      .clk(clk), .rst(rst), .start(start), .forwardable(forwardable), .is_ipv4(is_ipv4), .ttl_expired(ttl_expired),
      .checksum_ok(checksum_ok), .key(key), .done(done), .fast(fast), .drop_ttl(drop_ttl),
      .drop_checksum(drop_checksum), .no_port(no_port), .dest(dest), .high(high), .entry(entry), .policy(policy),
      .own_id(own_id), .up(up), .mac_addr(mac_addr), .mac_busy(mac_busy), .mac_data(mac_data), .wr_rule(wr_rule),
      .wr_commit(wr_commit && !rst), .wr_policy(wr_policy && !rst), .wr_word(wr_word), .wr_data(wr_data),
      .rd_rule(reading), .rd_word(rd_word), .rd_done(rd_done), .rd_data(rd_data), .status(status),
      .policy_written(policy_written)
  );
  wire bank = status[2], valid = status[0];
  wire spare = !bank;   // what is written

  // What is kept where.
  (* hierconn *) wire [3:0] \dut.routes[0].compared.chosen , \dut.routes[1].compared.chosen ;
  (* hierconn *) wire [3:0] \dut.routes[0].leads.chosen , \dut.routes[1].leads.chosen ;
  (* hierconn *) wire [63:0] \dut.routes[0].compared.kept , \dut.routes[1].compared.kept ;
  (* hierconn *) wire [5:0] \dut.routes[0].leads.kept , \dut.routes[1].leads.kept ;
  (* hierconn *) wire [2:0] \dut.values.chosen , \dut.enables.chosen , \dut.masks.chosen , \dut.masks_high.chosen ;
  (* hierconn *) wire [63:0] \dut.values.kept , \dut.masks.kept ;
  (* hierconn *) wire [16:0] \dut.enables.kept ;
  (* hierconn *) wire [15:0] \dut.masks_high.kept ;
  (* hierconn *) wire [5:0] \dut.macs.chosen ;
  (* hierconn *) wire [47:0] \dut.macs.kept ;
  (* hierconn *) wire \dut.found , \dut.rd_bank ;
  (* anyconst *) reg odd;
  wire [3:0] pair = \dut.routes[0].compared.chosen ;
  wire [4:0] route = {pair, odd};
  wire [2:0] rule = \dut.values.chosen ;
  wire [5:0] hop = \dut.macs.chosen ;
  always @(*) begin
    assume (\dut.routes[1].compared.chosen == pair && \dut.routes[0].leads.chosen == pair
        && \dut.routes[1].leads.chosen == pair);
    assume (\dut.enables.chosen == rule && \dut.masks.chosen == rule && \dut.masks_high.chosen == rule);
  end

  // The same by the registers' description, from what happens to be there at first.
  reg [63:0] match_bits, class_value, class_mask;
  reg [5:0] lead;
  reg [16:0] class_more;
  reg [15:0] class_mask_high;
  reg [47:0] mac;
  always @(posedge clk)
    if (rst) begin
      match_bits <= odd ? \dut.routes[1].compared.kept : \dut.routes[0].compared.kept ;
      lead <= odd ? \dut.routes[1].leads.kept : \dut.routes[0].leads.kept ;
      {class_value, class_more, class_mask, class_mask_high} <=
          {\dut.values.kept , \dut.enables.kept , \dut.masks.kept , \dut.masks_high.kept };
      mac <= \dut.macs.kept ;
    end else if (wr_rule) begin
      if (!wr_word[6] && route == {spare, wr_word[5:2]})
        case (wr_word[1:0])
          2'd0: match_bits <= wr_data;
          2'd1: lead <= {wr_data[63:61], wr_data[2:0]};
          default: ;
        endcase
      if (!wr_word[6] && wr_word[1] && hop == {spare, wr_word[5:2], wr_word[0]}) mac <= wr_data[47:0];
      if (wr_word[6] && {1'b0, rule} == {1'b0, spare, wr_word[3:2]} && !wr_word[4])
        case (wr_word[1:0])
          2'd0: class_value <= wr_data;
          2'd1: class_more <= {wr_data[63], wr_data[15:0]};
          2'd2: class_mask <= wr_data;
          default: class_mask_high <= wr_data[15:0];
        endcase
    end

  // RFC 1812, section 4.2.2.11: a directed broadcast has ones for a host, and zeros were one.
  wire [31:0] value = match_bits[31:0], mask = match_bits[63:32], dst = key_r[39:8];
  wire matches = lead[5] && (dst & mask) == (value & mask);
  wire edge_of_net = lead[4] && ((dst & ~mask) == ~mask || (dst & ~mask) == 0);
  wire to_host = lead[3] || edge_of_net || lead[2:0] == own_id;
  wire reachable = !lead[2] && up[lead[1:0]];
  wire looked_up = forwardable_r && checksum_r && valid;
  wire found = \dut.found ;
  wire by_route = found && entry == route;
  wire leaves = looked_up && !to_host;
  reg bank_then, valid_then;
  reg [2:0] policy_then;
  reg mac_known = 1'b0, looking = 1'b0;
  reg [47:0] mac_then;
  always @(posedge clk) begin
    if (start) looking <= 1'b1;
    else if (done) looking <= 1'b0;
    if (start) {bank_then, valid_then, policy_then} <= {bank, valid, policy};
    mac_known <= mac_busy && mac_addr == hop && !rst;
    mac_then <= mac;
    if (!rst) begin
      assert (!done || looking);
      if (done && forwardable_r) assert (age == LONGEST - 1);
      if (looking) assert (age < LONGEST && bank == bank_then && valid == valid_then && policy == policy_then);
      if (done) begin
        assert (drop_checksum == (forwardable_r && !checksum_r && policy[1] && valid));
        if (forwardable_r && matches && bank == pair[3]) assert (found && entry <= route);
        if (found) assert (entry[4] == bank && forwardable_r);
        if (by_route) begin
          assert (matches);
          assert (fast == (leaves && reachable && !ttl_expired_r));
          assert (no_port == (leaves && !reachable));
          assert (drop_ttl == (leaves && reachable && ttl_expired_r && !policy[2]));
          assert (dest == (fast ? lead[2:0] : own_id));
        end
        if (!found) assert (!fast && !no_port && !drop_ttl && dest == own_id);
        if (rule == {bank, dest[1:0]})
          assert (high == (class_more[16] && is_ipv4_r && valid
              && ((key_r ^ {class_more[15:0], class_value}) & {class_mask_high, class_mask}) == 0));
      end
      if (mac_known) assert (mac_data == mac_then);
      if (rd_done) begin
        if (!rd_word[6] && route == {\dut.rd_bank , rd_word[5:2]}) begin
          if (rd_word[1:0] == 0) assert (rd_data == match_bits);
          if (rd_word[1:0] == 1) assert (rd_data == {lead[5:3], 58'd0, lead[2:0]});
        end
        if (!rd_word[6] && rd_word[1] && hop == {\dut.rd_bank , rd_word[5:2], rd_word[0]})
          assert (rd_data == {16'd0, mac});
        if (rd_word[6] && !rd_word[4] && rule == {\dut.rd_bank , rd_word[3:2]})
          case (rd_word[1:0])
            2'd0: assert (rd_data == class_value);
            2'd1: assert (rd_data == {class_more[16], 47'd0, class_more[15:0]});
            2'd2: assert (rd_data == class_mask);
            default: assert (rd_data == {48'd0, class_mask_high});
          endcase
      end
`ifdef REACH
      assert (!(done && by_route && fast && high && bank && entry[3:0] == 11 && rule == {bank, dest[1:0]}));
`endif
    end
  end
endmodule

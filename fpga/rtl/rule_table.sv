// SPDX-License-Identifier: MIT OR Apache-2.0
// Routes and class rules, in two banks: one in force, the other one for the driver to write. A commit changes their
// places between two frames. Memories and not registers, because a frame leaves time to look at sixteen routes, two a
// cycle: a route is {mask, value} and where it leads, and the lowest that matches wins; then the class rule of the
// destination is compared with the key at once. The decision follows `start` by fourteen cycles.
//
// Configuration is read back from the bank that was written last (the one in force after a commit), when no frame is
// being looked up; a frame that comes puts a read off.
`default_nettype none

module rule_table #(
    parameter NICS = 4,
    parameter EW = $clog2(NICS)
) (
    input  wire            clk,
    input  wire            rst,
    // A frame's header; the fields stay until `done`.
    input  wire            start,
    input  wire            forwardable,
    input  wire            is_ipv4,
    input  wire            ttl_expired,
    input  wire            checksum_ok,    // two cycles after start
    input  wire [79:0]     key,            // ToS, source, destination, protocol
    output reg             done,           // pulse: the decision
    output wire            fast,
    output wire            drop_ttl,
    output wire            drop_checksum,
    output wire            no_port,        // to the host because the peer is down
    output wire [2:0]      dest,
    output wire            high,
    output wire [4:0]      entry,          // {bank, route}
    output wire [2:0]      policy,         // of the bank in force
    input  wire [2:0]      own_id,
    input  wire [NICS-1:0] up,             // cards that can be reached
    // Next-hop and source addresses: {bank, route, next hop or source}, a cycle later.
    input  wire [5:0]      mac_addr,
    input  wire            mac_busy,       // mac_addr is used
    output wire [47:0]     mac_data,
    // Configuration, words of the areas ROUTE and CLASS.
    input  wire            wr_rule,
    input  wire            wr_commit,
    input  wire            wr_policy,
    input  wire [6:0]      wr_word,        // 0 to 63 routes, 64 to 95 class rules
    input  wire [63:0]     wr_data,
    input  wire            rd_rule,        // held until rd_done
    input  wire [6:0]      rd_word,
    output reg             rd_done,
    output reg  [63:0]     rd_data,
    output wire [2:0]      status,         // {bank in force, change to come, rules are in force}
    output wire [2:0]      policy_written
);
  localparam [2:0] IDLE = 3'd0, ROUTES = 3'd1, SETTLE = 3'd2, CLASSES = 3'd3, COMPARE = 3'd4, READ = 3'd5, ANSWER = 3'd6;

  reg [2:0] state;
  reg bank, valid, change, change_valid, written;
  reg [2:0] policies[0:1];
  assign status = {bank, change, valid};
  assign policy = policies[bank];
  assign policy_written = policies[rd_bank];
  wire wr_route = wr_rule && !wr_word[6];
  wire wr_class = wr_rule && wr_word[6];
  wire wr_odd = wr_word[2];

  // Routes: even and odd ones apart.
  reg [2:0] pair;
  reg rd_bank;
  wire [3:0] route_at = (state == READ) ? {rd_bank, rd_word[5:3]} : {bank, pair};
  wire [127:0] match_q;
  wire [11:0] lead_q;   // valid, edges, host, card
  genvar g;
  generate
    for (g = 0; g < 2; g = g + 1) begin : routes
      lutram_1r1w #(.W(64), .AW(4)) compared (
          .wr_clk(clk), .wr_en(wr_route && wr_odd == (g == 1) && wr_word[1:0] == 2'd0), .wr_addr({!bank, wr_word[5:3]}),
          .wr_data(wr_data), .rd_addr(route_at), .rd_data(match_q[64*g+:64])
      );
      lutram_1r1w #(.W(6), .AW(4)) leads (
          .wr_clk(clk), .wr_en(wr_route && wr_odd == (g == 1) && wr_word[1:0] == 2'd1), .wr_addr({!bank, wr_word[5:3]}),
          .wr_data({wr_data[63:61], wr_data[2:0]}), .rd_addr(route_at), .rd_data(lead_q[6*g+:6])
      );
    end
  endgenerate
  // Read ({mask, value} and where it leads), then compared.
  reg [63:0] match_r[0:1];
  reg [5:0] lead_r[0:1], lead_c[0:1];
  reg [1:0] hits, edges;
  reg [3:0] pair_r, pair_c;   // {in use, pair}
  wire [31:0] dst = key[39:8];
  integer i;
  always_ff @(posedge clk)
    for (i = 0; i < 2; i = i + 1) begin
      match_r[i] <= match_q[64*i+:64];
      lead_r[i] <= lead_q[6*i+:6];
      lead_c[i] <= lead_r[i];
      hits[i] <= lead_r[i][5] && ((dst ^ match_r[i][31:0]) & match_r[i][63:32]) == 0;
      edges[i] <= lead_r[i][4] && ((dst | match_r[i][63:32]) == 32'hffffffff || (dst & ~match_r[i][63:32]) == 0);
    end

  // The lowest hit.
  reg found, to_host;
  reg [3:0] route;
  reg [2:0] card;
  wire now = pair_c[3] && hits != 0 && !found;
  wire odd = !hits[0];
  assign entry = {bank, route};

  // Where to.
  wire [7:0] reachable = {{(8 - NICS){1'b0}}, up};
  wire routed = forwardable && checksum_ok && valid && found && !to_host && card != own_id;
  wire fast_now = routed && reachable[card] && !ttl_expired;
  reg fast_r, no_port_r, ttl_r;
  reg [2:0] dest_r;
  assign fast = fast_r;
  assign dest = dest_r;
  assign no_port = no_port_r;
  assign drop_checksum = forwardable && !checksum_ok && policy[1] && valid;
  assign drop_ttl = ttl_r && !policy[2];

  // Class rules.
  wire [EW:0] class_at = (state == READ) ? {rd_bank, rd_word[2+:EW]} : {bank, dest_r[EW-1:0]};
  wire [EW:0] class_wr_at = {!bank, wr_word[2+:EW]};
  wire [63:0] value_low, mask_low;
  wire [15:0] value_high, mask_high;
  wire class_enable;
  wire in_range = {1'b0, wr_word[4:2]} < NICS[3:0];
  lutram_1r1w #(.W(64), .AW(EW + 1)) values (
      .wr_clk(clk), .wr_en(wr_class && in_range && wr_word[1:0] == 2'd0), .wr_addr(class_wr_at), .wr_data(wr_data),
      .rd_addr(class_at), .rd_data(value_low)
  );
  lutram_1r1w #(.W(17), .AW(EW + 1)) enables (
      .wr_clk(clk), .wr_en(wr_class && in_range && wr_word[1:0] == 2'd1), .wr_addr(class_wr_at),
      .wr_data({wr_data[63], wr_data[15:0]}), .rd_addr(class_at), .rd_data({class_enable, value_high})
  );
  lutram_1r1w #(.W(64), .AW(EW + 1)) masks (
      .wr_clk(clk), .wr_en(wr_class && in_range && wr_word[1:0] == 2'd2), .wr_addr(class_wr_at), .wr_data(wr_data),
      .rd_addr(class_at), .rd_data(mask_low)
  );
  lutram_1r1w #(.W(16), .AW(EW + 1)) masks_high (
      .wr_clk(clk), .wr_en(wr_class && in_range && wr_word[1:0] == 2'd3), .wr_addr(class_wr_at),
      .wr_data(wr_data[15:0]), .rd_addr(class_at), .rd_data(mask_high)
  );
  reg [79:0] differs;
  reg class_valid, high_r;
  assign high = high_r;

  // Addresses; the driver reads when no frame does.
  wire rd_mac = state == READ && !rd_word[6] && rd_word[1];
  wire [5:0] mac_at = (rd_mac && !mac_busy) ? {rd_bank, rd_word[5:2], rd_word[0]} : mac_addr;
  ram_1r1w #(.W(48), .DEPTH(64)) macs (
      .clk(clk), .wr_en(wr_route && wr_word[1]), .wr_addr({!bank, wr_word[5:2], wr_word[0]}), .wr_data(wr_data[47:0]),
      .rd_addr(mac_at), .rd_data(mac_data)
  );

  wire [63:0] route_word = rd_word[0] ? {lead_r[rd_word[2]][5:3], 58'd0, lead_r[rd_word[2]][2:0]} : match_r[rd_word[2]];
  reg [63:0] class_word;
  always_ff @(posedge clk) begin
    case (rd_word[1:0])
      2'd0: class_word <= value_low;
      2'd1: class_word <= {class_enable, 47'd0, value_high};
      2'd2: class_word <= mask_low;
      default: class_word <= {48'd0, mask_high};
    endcase
    if ({1'b0, rd_word[4:2]} >= NICS[3:0]) class_word <= 64'd0;
  end

  always_ff @(posedge clk) begin
    done <= 1'b0;
    rd_done <= 1'b0;
    pair_r <= {state == ROUTES, pair};
    pair_c <= pair_r;
    if (now) begin
      found <= 1'b1;
      to_host <= lead_c[odd][3] || edges[odd];
      route <= {pair_c[2:0], odd};
      card <= lead_c[odd][2:0];
    end
    case (state)
      IDLE: begin
        pair <= 0;
        found <= 1'b0;
        rd_bank <= bank ^ written;
        if (change && !start) begin
          change <= 1'b0;
          valid <= change_valid;
          bank <= bank ^ written;
          written <= 1'b0;
        end else if (rd_rule && !rd_done) state <= READ;
      end
      ROUTES: begin
        pair <= pair + 1'b1;
        if (pair == 3'd7) state <= SETTLE;
      end
      SETTLE: begin
        // The last routes are being compared; a frame that is looked up by nothing waits for its checksum.
        pair <= pair + 1'b1;
        if (pair == 3'd2) begin
          fast_r <= fast_now;
          ttl_r <= routed && reachable[card] && ttl_expired;
          no_port_r <= routed && !reachable[card];
          dest_r <= fast_now ? card : own_id;
          state <= CLASSES;
        end
      end
      CLASSES: begin
        differs <= (key ^ {value_high, value_low}) & {mask_high, mask_low};
        class_valid <= class_enable && is_ipv4 && valid;
        state <= COMPARE;
      end
      COMPARE: begin
        high_r <= class_valid && differs == 0;
        done <= 1'b1;
        state <= IDLE;
      end
      READ: if (!(rd_mac && mac_busy)) state <= ANSWER;
      default: begin
        rd_data <= rd_word[6] ? class_word : rd_word[1] ? {16'd0, mac_data} : route_word;
        rd_done <= 1'b1;
        state <= IDLE;
      end
    endcase
    if (start) state <= forwardable ? ROUTES : SETTLE;
    if (wr_rule || wr_policy) written <= 1'b1;
    if (wr_policy) policies[!bank] <= wr_data[2:0];
    if (wr_commit) begin
      change <= 1'b1;
      change_valid <= wr_data[0];
    end
    if (rst) begin
      state <= IDLE;
      bank <= 1'b0;
      valid <= 1'b0;
      change <= 1'b0;
      written <= 1'b0;
      policies[0] <= 3'd0;
      policies[1] <= 3'd0;
      done <= 1'b0;
      rd_done <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  // The MAC keeps frames apart.
  always @(posedge clk) if (!rst) assert (!(start && state != IDLE && state != READ && state != ANSWER));
`endif
endmodule

`default_nettype wire

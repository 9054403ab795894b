// SPDX-License-Identifier: MIT OR Apache-2.0
// BAR 0, registers: configuration, status, interrupts and counters. The map is in nic_pkg and doc/registers. Rules are
// kept where they are used, and read back from there.
`default_nettype none

module register_file #(
    parameter NICS = 4,
    parameter CAP_WORDS = 1920,
    parameter OUT_CAP_WORDS = 1920,
    parameter EVENTS = nic_pkg::EV_DROP_FIFO + 2 * NICS,
    parameter CW = $clog2(EVENTS)
) (
    input  wire              clk,
    input  wire              rst,
    input  wire              wr_valid,       // in the register area
    input  wire [11:0]       wr_addr,
    input  wire [63:0]       wr_data,
    input  wire              rd_valid,
    input  wire [11:0]       rd_addr,
    output reg               rd_done,
    output reg  [63:0]       rd_data,
    // Configuration.
    output reg  [1:0]        control,
    output reg  [2:0]        own_id,
    output reg  [47:0]       own_mac,
    output reg  [11:0]       grant_min_words,
    output reg  [1:0]        policy,         // of the response scheduler
    output reg  [10:0]       quantum_words,
    output reg  [15:0]       patience,
    output reg  [63:0]       rx_desc_base,   // high class, low class
    output reg  [63:0]       rx_buffer_base,
    output reg  [31:0]       rx_tail,
    output reg  [31:0]       tx_done_addr,
    output reg  [127:0]      peer_base,      // bits 31:16 of each
    output reg  [7:0]        peer_present,
    output reg               tx_post,        // pulse, with the data a cycle after the write
    output reg  [7:0]        peer_resync,    // pulse
    output reg  [63:0]       post_data,
    // Status.
    input  wire [47:0]       tx_status,
    input  wire [31:0]       peer_state,
    // Rules.
    output wire              wr_rule,
    output wire              wr_commit,
    output wire              wr_policy,
    output wire              rd_rule,
    output wire [6:0]        rd_word,
    input  wire              rule_done,
    input  wire [63:0]       rule_data,
    input  wire [2:0]        rule_status,
    input  wire [2:0]        rule_policy,
    // Interrupts.
    input  wire              irq_rx,         // pulse
    input  wire              irq_tx,
    input  wire [9:0]        errors,
    output reg               irq,
    // Counters.
    output reg               rd_counter,     // held until counter_done
    output wire [CW-1:0]     rd_index,
    input  wire              counter_done,
    input  wire [63:0]       counter_data
);
  // Rules: 0x400 to 0x6ff, but the routes are sixteen and the class rules eight.
  wire in_rules = wr_addr[11:8] == nic_pkg::REG_ROUTE[11:8] || wr_addr[11:8] == nic_pkg::REG_ROUTE[11:8] + 4'd1
      || wr_addr[11:8] == nic_pkg::REG_CLASS[11:8];
  assign wr_rule = wr_valid && in_rules;
  assign wr_commit = wr_valid && wr_addr == nic_pkg::REG_RULES;
  assign wr_policy = wr_valid && wr_addr == nic_pkg::REG_POLICY;

  reg [2:0] irq_status, irq_enable;
  reg [9:0] error_status;
  wire wr_peer = wr_valid && wr_addr[11:6] == nic_pkg::REG_PEER_BASE[11:6];

  integer n;
  always_ff @(posedge clk) begin
    tx_post <= 1'b0;
    peer_resync <= 8'd0;
    irq <= (irq_status & irq_enable) != 0;
    irq_status <= irq_status | {errors != 0, irq_tx, irq_rx};
    error_status <= error_status | errors;
    if (wr_valid)
      case (wr_addr)
        nic_pkg::REG_CONTROL: control <= wr_data[1:0];
        nic_pkg::REG_OWN_ID: own_id <= wr_data[2:0];
        nic_pkg::REG_OWN_MAC: own_mac <= wr_data[47:0];
        nic_pkg::REG_GRANT_MIN_WORDS: grant_min_words <= wr_data[11:0];
        nic_pkg::REG_SCHEDULER: {quantum_words, policy} <= {wr_data[26:16], wr_data[1:0]};
        nic_pkg::REG_PATIENCE: patience <= wr_data[15:0];
        // What happens in this cycle is not forgotten.
        nic_pkg::REG_IRQ_STATUS: irq_status <= (irq_status & ~wr_data[2:0]) | {errors != 0, irq_tx, irq_rx};
        nic_pkg::REG_IRQ_ENABLE: irq_enable <= wr_data[2:0];
        nic_pkg::REG_ERRORS: error_status <= (error_status & ~wr_data[9:0]) | errors;
        nic_pkg::REG_RX_DESC_BASE: rx_desc_base[31:0] <= wr_data[31:0];
        nic_pkg::REG_RX_BUFFER_BASE: rx_buffer_base[31:0] <= wr_data[31:0];
        nic_pkg::REG_RX_TAIL: rx_tail[15:0] <= wr_data[15:0];
        nic_pkg::REG_RX_DESC_BASE + nic_pkg::REG_RX_DESC_BASE_STRIDE: rx_desc_base[63:32] <= wr_data[31:0];
        nic_pkg::REG_RX_BUFFER_BASE + nic_pkg::REG_RX_BUFFER_BASE_STRIDE: rx_buffer_base[63:32] <= wr_data[31:0];
        nic_pkg::REG_RX_TAIL + nic_pkg::REG_RX_TAIL_STRIDE: rx_tail[31:16] <= wr_data[15:0];
        nic_pkg::REG_TX_POST: begin
          tx_post <= 1'b1;
          post_data <= wr_data;
        end
        nic_pkg::REG_TX_DONE_ADDRESS: tx_done_addr <= wr_data[31:0];
        nic_pkg::REG_PEER_RESYNC: peer_resync <= wr_data[7:0];
        default: ;
      endcase
    for (n = 0; n < 8; n = n + 1)
      if (wr_peer && wr_addr[5:3] == n[2:0])
        {peer_base[16*n+:16], peer_present[n]} <= {wr_data[31:16], wr_data[nic_pkg::BIT_PEER_PRESENT]};
    if (rst) begin
      control <= 0;
      own_id <= 0;
      grant_min_words <= 0;
      policy <= 0;
      quantum_words <= 11'd256;
      patience <= 16'd1024;
      rx_tail <= 0;
      peer_present <= 0;
      tx_post <= 1'b0;
      peer_resync <= 8'd0;
      irq_status <= 0;
      irq_enable <= 0;
      error_status <= 0;
      irq <= 1'b0;
    end
  end

  wire unused = |rd_addr;

  // Reading: one request at a time. First the groups, then one of them.
  reg [11:3] addr;
  reg [1:0] step;
  reg busy;
  wire in_counters = addr[11:9] == nic_pkg::REG_COUNTERS[11:9] && {1'b0, addr[8:3]} < EVENTS[6:0];
  wire at_rules = addr[11:8] == nic_pkg::REG_ROUTE[11:8] || addr[11:8] == nic_pkg::REG_ROUTE[11:8] + 4'd1
      || (addr[11:8] == nic_pkg::REG_CLASS[11:8]);
  assign rd_index = addr[3+:CW];
  assign rd_rule = busy && at_rules;
  assign rd_word = {addr[9], addr[8:3]};
  reg [63:0] group_0, group_1, group_2, group_3;
  wire [63:0] parameters = {16'd0, OUT_CAP_WORDS[15:0], CAP_WORDS[15:0], 8'(nic_pkg::ROUTES), 8'(NICS)};
  always_ff @(posedge clk) begin
    case (addr[5:3])
      3'd0: group_0 <= nic_pkg::ID_VALUE;
      3'd1: group_0 <= {62'd0, control};
      3'd2: group_0 <= {61'd0, own_id};
      3'd3: group_0 <= {16'd0, own_mac};
      3'd4: group_0 <= {52'd0, grant_min_words};
      3'd5: group_0 <= {37'd0, quantum_words, 14'd0, policy};
      3'd6: group_0 <= {48'd0, patience};
      default: group_0 <= parameters;
    endcase
    case (addr[6:3])
      4'h8: group_1 <= {61'd0, irq_status};
      4'h9: group_1 <= {61'd0, irq_enable};
      4'ha: group_1 <= {54'd0, error_status};
      4'hc: group_1 <= {32'd0, rx_desc_base[31:0]};
      4'hd: group_1 <= {32'd0, rx_buffer_base[31:0]};
      4'he: group_1 <= {48'd0, rx_tail[15:0]};
      4'hf: group_1 <= {32'd0, rx_desc_base[63:32]};
      default: group_1 <= 64'd0;
    endcase
    case (addr[6:3])
      4'h0: group_2 <= {32'd0, rx_buffer_base[63:32]};
      4'h1: group_2 <= {48'd0, rx_tail[31:16]};
      4'h5: group_2 <= {32'd0, tx_done_addr};
      4'h6: group_2 <= {16'd0, tx_status};
      default: group_2 <= 64'd0;
    endcase
    group_3 <= 64'd0;
    if (addr[7:6] == 2'd0) group_3 <= {32'd0, peer_base[16*addr[5:3]+:16], 15'd0, peer_present[addr[5:3]]};
    else if (addr[7:3] == nic_pkg::REG_PEER_STATE[7:3]) group_3 <= {32'd0, peer_state};
    if (addr[7:3] == nic_pkg::REG_RULES[7:3]) group_3 <= {61'd0, rule_status};
    if (addr[7:3] == nic_pkg::REG_POLICY[7:3]) group_3 <= {61'd0, rule_policy};

    rd_done <= 1'b0;
    // Registered, because the choice of what is counted comes behind it.
    rd_counter <= busy && in_counters && !counter_done;
    step <= {step[0], 1'b1};
    if (rd_valid) begin
      busy <= 1'b1;
      addr <= rd_addr[11:3];
      step <= 2'b00;
    end else if (busy && step[1] && (in_counters ? counter_done : at_rules ? rule_done : 1'b1)) begin
      busy <= 1'b0;
      rd_done <= 1'b1;
      rd_data <= in_counters ? counter_data : at_rules ? rule_data
          : (addr[11:6] == 6'd0) ? group_0
          : (addr[11:7] == 5'd0) ? group_1
          : (addr[11:7] == 5'd1) ? group_2
          : (addr[11:8] == 4'd1) ? group_3 : 64'd0;
    end
    if (rst) begin
      busy <= 1'b0;
      rd_counter <= 1'b0;
    end
  end
endmodule

`default_nettype wire

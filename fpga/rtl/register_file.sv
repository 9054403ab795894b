// BAR 0, registers: configuration (write only), identity, control and counters (read). The map is in nic_pkg.
`default_nettype none

module register_file #(
    parameter NICS = 4,
    parameter EW = $clog2(NICS),
    parameter EVENTS = nic_pkg::EV_DROP_FIFO + 2 * NICS
) (
    input  wire               clk,
    input  wire               rst,
    input  wire               wr_valid,    // in the register area
    input  wire [11:0]        wr_addr,
    input  wire [63:0]        wr_data,
    input  wire               rd_valid,
    input  wire [11:0]        rd_addr,
    output reg                rd_done,
    output reg  [63:0]        rd_data,
    input  wire [EVENTS-1:0]  events,
    output reg  [5:0]         control,
    output reg  [2:0]         own_id,
    output reg  [47:0]        own_mac,
    output reg  [11:0]        grant_min_words,
    output reg                irq_enable,
    output reg                irq_clear,   // pulse
    output reg  [63:0]        rx_desc_base,
    output reg  [63:0]        rx_buffer_base,
    output reg  [31:0]        rx_tail,
    output reg                tx_post,     // pulse
    output reg  [42:0]        tx_post_data,
    output reg  [31:0]        tx_done_addr,
    output reg  [127:0]       peer_base,   // bits 31:16 of each
    output reg  [32*NICS-1:0] route_value,
    output reg  [32*NICS-1:0] route_mask,
    output reg  [NICS-1:0]    route_valid,
    output reg  [3*NICS-1:0]  route_nic,
    output reg  [80*NICS-1:0] class_value,
    output reg  [80*NICS-1:0] class_mask,
    output reg  [NICS-1:0]    class_enable,
    input  wire [EW:0]        mac_addr,
    output wire [47:0]        mac_data
);
  wire [2:0] entry = wr_addr[7:5];
  wire in_range = {1'b0, entry} < NICS[3:0];
  wire [2:0] peer = wr_addr[5:3];
  wire is_route = wr_valid && wr_addr[11:8] == nic_pkg::REG_ROUTE[11:8] && in_range;
  wire is_class = wr_valid && wr_addr[11:8] == nic_pkg::REG_CLASS[11:8] && in_range;

  integer i;
  always @(posedge clk) begin
    tx_post <= 1'b0;
    irq_clear <= 1'b0;
    if (wr_valid)
      case (wr_addr)
        nic_pkg::REG_CONTROL: control <= wr_data[5:0];
        nic_pkg::REG_OWN_ID: own_id <= wr_data[2:0];
        nic_pkg::REG_OWN_MAC: own_mac <= wr_data[47:0];
        nic_pkg::REG_GRANT_MIN_WORDS: grant_min_words <= wr_data[11:0];
        nic_pkg::REG_IRQ_ENABLE: begin
          irq_enable <= wr_data[0];
          irq_clear <= !wr_data[0];
        end
        nic_pkg::REG_RX_DESC_BASE: rx_desc_base[31:0] <= wr_data[31:0];
        nic_pkg::REG_RX_BUFFER_BASE: rx_buffer_base[31:0] <= wr_data[31:0];
        nic_pkg::REG_RX_TAIL: rx_tail[15:0] <= wr_data[15:0];
        nic_pkg::REG_RX_DESC_BASE + nic_pkg::REG_RX_RING_STRIDE: rx_desc_base[63:32] <= wr_data[31:0];
        nic_pkg::REG_RX_BUFFER_BASE + nic_pkg::REG_RX_RING_STRIDE: rx_buffer_base[63:32] <= wr_data[31:0];
        nic_pkg::REG_RX_TAIL + nic_pkg::REG_RX_RING_STRIDE: rx_tail[31:16] <= wr_data[15:0];
        nic_pkg::REG_TX_POST: begin
          tx_post <= 1'b1;
          tx_post_data <= wr_data[42:0];
        end
        nic_pkg::REG_TX_DONE_ADDRESS: tx_done_addr <= wr_data[31:0];
        default: ;
      endcase
    if (wr_valid && wr_addr[11:6] == nic_pkg::REG_PEER_BASE[11:6]) peer_base[16*peer+:16] <= wr_data[31:16];
    for (i = 0; i < NICS; i = i + 1) begin
      if (is_route && entry == i[2:0]) begin
        if (wr_addr[4:3] == 2'd0) {route_mask[32*i+:32], route_value[32*i+:32]} <= wr_data;
        if (wr_addr[4:3] == 2'd1) {route_valid[i], route_nic[3*i+:3]} <= {wr_data[63], wr_data[2:0]};
      end
      if (is_class && entry == i[2:0]) begin
        if (wr_addr[4:3] == 2'd0) class_value[80*i+:64] <= wr_data;
        if (wr_addr[4:3] == 2'd1) {class_enable[i], class_value[80*i+64+:16]} <= {wr_data[63], wr_data[15:0]};
        if (wr_addr[4:3] == 2'd2) class_mask[80*i+:64] <= wr_data;
        if (wr_addr[4:3] == 2'd3) class_mask[80*i+64+:16] <= wr_data[15:0];
      end
    end
    if (rst) begin
      control <= 0;
      own_id <= 0;
      grant_min_words <= 0;
      irq_enable <= 1'b0;
      rx_tail <= 0;
      route_valid <= 0;
      class_enable <= 0;
      tx_post <= 1'b0;
    end
  end

  // Next hops and source addresses: a memory, because they are only read one at a time.
  ram_1r1w #(.W(48), .DEPTH(2 * NICS)) macs (
      .clk(clk), .wr_en(is_route && wr_addr[4]), .wr_addr({entry[EW-1:0], wr_addr[3]}), .wr_data(wr_data[47:0]),
      .rd_addr(mac_addr), .rd_data(mac_data)
  );

  // Reading: one request at a time; the counters take a few cycles.
  reg busy;
  reg [11:0] addr;
  wire counter_done;
  wire [31:0] counter;
  wire is_counter = addr[11:8] == nic_pkg::REG_COUNTERS[11:8];
  counter_bank #(.EVENTS(EVENTS)) counters (
      .clk(clk), .rst(rst), .events(events), .rd_valid(busy && is_counter), .rd_addr(addr[3+:$clog2(EVENTS)]),
      .rd_done(counter_done), .rd_data(counter)
  );
  always @(posedge clk) begin
    rd_done <= 1'b0;
    if (rd_valid) begin
      busy <= 1'b1;
      addr <= rd_addr;
    end else if (busy && (!is_counter || counter_done)) begin
      busy <= 1'b0;
      rd_done <= 1'b1;
      rd_data <= is_counter ? {32'd0, counter} : (addr == nic_pkg::REG_ID) ? nic_pkg::ID_VALUE
          : (addr == nic_pkg::REG_CONTROL) ? {58'd0, control} : 64'd0;
    end
    if (rst) busy <= 1'b0;
  end
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// Any writes and any events: an event sets its bit whatever is written in the same cycle, nothing but a one written
// there clears it, and the line is high while a bit is set that is enabled.
module fv_interrupts (
    input wire        clk,
    input wire        writes,
    input wire [11:0] address,
    input wire [63:0] value,
    input wire        rx,
    input wire        tx,
    input wire [9:0]  errors
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  wire irq;
  register_file dut (
      .clk(clk), .rst(rst), .wr_valid(writes), .wr_addr(address), .wr_data(value), .rd_valid(1'b0), .rd_addr(12'd0),
      .rd_done(), .rd_data(), .control(), .own_id(), .own_mac(), .grant_min_words(), .policy(), .quantum_words(),
      .patience(), .rx_desc_base(), .rx_buffer_base(), .rx_tail(), .tx_done_addr(), .peer_base(), .peer_present(),
      .tx_post(), .peer_resync(), .post_data(), .tx_status(48'd0), .peer_state(32'd0), .wr_rule(), .wr_commit(),
      .wr_policy(), .rd_rule(), .rd_word(), .rule_done(1'b0), .rule_data(64'd0), .rule_status(3'd0),
      .rule_policy(3'd0), .irq_rx(rx), .irq_tx(tx), .errors(errors), .irq(irq), .rd_counter(), .rd_index(),
      .counter_done(1'b0), .counter_data(64'd0)
  );
  (* hierconn *) wire [9:0] \dut.error_status ;
  reg [2:0] status = 0, enable = 0;
  reg [9:0] error_status = 0;
  reg line = 1'b0;
  integer i;
  always @(posedge clk)
    if (rst) line <= 1'b0;
    else begin
      if (writes && address == nic_pkg::REG_IRQ_ENABLE) enable <= value[2:0];
      for (i = 0; i < 3; i = i + 1)
        if (writes && address == nic_pkg::REG_IRQ_STATUS && value[i]) status[i] <= 1'b0;
      for (i = 0; i < 10; i = i + 1)
        if (writes && address == nic_pkg::REG_ERRORS && value[i]) error_status[i] <= 1'b0;
      if (rx) status[nic_pkg::BIT_IRQ_RX] <= 1'b1;
      if (tx) status[nic_pkg::BIT_IRQ_TX] <= 1'b1;
      if (errors != 0) status[nic_pkg::BIT_IRQ_ERROR] <= 1'b1;
      for (i = 0; i < 10; i = i + 1) if (errors[i]) error_status[i] <= 1'b1;
      line <= (status & enable) != 0;
      assert (irq == line);
      assert (\dut.error_status == error_status);
    end
endmodule

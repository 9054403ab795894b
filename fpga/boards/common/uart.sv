// SPDX-License-Identifier: MIT OR Apache-2.0
// Bytes over a serial line, 8N1, in both directions.
`default_nettype none

module uart #(
    parameter CLOCKS = 542   // of a bit
) (
    input  wire       clk,
    input  wire       rst,
    input  wire       rxd,
    output reg        txd,
    output reg        rx_valid,   // pulse
    output reg  [7:0] rx_data,
    input  wire       tx_valid,
    output wire       tx_ready,
    input  wire [7:0] tx_data
);
  localparam W = $clog2(CLOCKS);
  localparam [W-1:0] LAST = W'(CLOCKS - 1), HALF = W'(CLOCKS / 2);

  // Receive: a falling edge begins, every bit is looked at in its middle.
  (* async_reg = "true" *) reg [1:0] line;
  reg [W-1:0] rx_count;
  reg [3:0] rx_bit;
  reg rx_busy;
  always_ff @(posedge clk) begin
    line <= {line[0], rxd};
    rx_valid <= 1'b0;
    if (!rx_busy) begin
      rx_busy <= !line[1];
      rx_count <= HALF;
      rx_bit <= 0;
    end else if (rx_count != 0) rx_count <= rx_count - 1'b1;
    else begin
      rx_count <= LAST;
      rx_bit <= rx_bit + 1'b1;
      if (rx_bit == 0) rx_busy <= !line[1];
      else if (rx_bit <= 4'd8) rx_data <= {line[1], rx_data[7:1]};
      else begin
        rx_busy <= 1'b0;
        rx_valid <= line[1];
      end
    end
    if (rst) begin
      rx_busy <= 1'b0;
      rx_valid <= 1'b0;
    end
  end

  reg [W-1:0] tx_count;
  reg [3:0] tx_left;
  reg [8:0] shift;
  assign tx_ready = tx_left == 0;
  always_ff @(posedge clk) begin
    if (tx_ready) begin
      tx_count <= LAST;
      if (tx_valid) begin
        {shift, txd} <= {1'b1, tx_data, 1'b0};
        tx_left <= 4'd10;
      end
    end else if (tx_count != 0) tx_count <= tx_count - 1'b1;
    else begin
      tx_count <= LAST;
      {shift, txd} <= {1'b1, shift};
      tx_left <= tx_left - 1'b1;
    end
    if (rst) begin
      txd <= 1'b1;
      tx_left <= 0;
    end
  end
endmodule

`default_nettype wire

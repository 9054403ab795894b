// SPDX-License-Identifier: MIT OR Apache-2.0
// The host of a board without one: commands come over a serial line and become single transactions on the bus, or
// management frames. All numbers are sent lowest byte first.
//
//   W address(4) value(8)   writes a word           K, or E if nobody took it
//   R address(4)            reads a register        K value(8), or E
//   M frame(4)              a management frame      K data(2)
//
// Any other byte is answered by ? and begins anew.
`default_nettype none

module uart_host (
    input  wire        clk,
    input  wire        rst,
    input  wire        rx_valid,
    input  wire [7:0]  rx_data,
    output wire        tx_valid,
    input  wire        tx_ready,
    output wire [7:0]  tx_data,
    // One transaction at a time.
    output reg         start,
    output wire        read,
    output wire [31:0] addr,
    output wire [63:0] data,
    input  wire        done,
    input  wire        error,
    input  wire [63:0] read_data,
    output reg         mdio_start,
    output wire [31:0] mdio_frame,
    input  wire        mdio_done,
    input  wire [15:0] mdio_data
);
  localparam [7:0] WRITE = "W", READ = "R", MANAGE = "M", OK = "K", FAILED = "E", UNKNOWN = "?";
  localparam [1:0] COMMAND = 2'd0, ARGUMENTS = 2'd1, BUSY = 2'd2, ANSWER = 2'd3;
  reg [1:0] state;
  reg [7:0] command;
  reg [95:0] arguments;   // shifted in from above
  reg [3:0] left;
  reg [71:0] answer;
  assign read = command == READ;
  assign addr = read ? arguments[95:64] : arguments[31:0];
  assign data = arguments[95:32];
  assign mdio_frame = arguments[95:64];
  assign tx_valid = state == ANSWER;
  assign tx_data = answer[7:0];
  always_ff @(posedge clk) begin
    start <= 1'b0;
    mdio_start <= 1'b0;
    case (state)
      COMMAND:
        if (rx_valid) begin
          command <= rx_data;
          left <= (rx_data == WRITE) ? 4'd12 : 4'd4;
          state <= ARGUMENTS;
          if (rx_data != WRITE && rx_data != READ && rx_data != MANAGE) begin
            answer <= {64'd0, UNKNOWN};
            left <= 4'd1;
            state <= ANSWER;
          end
        end
      ARGUMENTS:
        if (rx_valid) begin
          arguments <= {rx_data, arguments[95:8]};
          left <= left - 1'b1;
          if (left == 4'd1) begin
            start <= command != MANAGE;
            mdio_start <= command == MANAGE;
            state <= BUSY;
          end
        end
      BUSY:
        if (done || mdio_done) begin
          answer <= {mdio_done ? {48'd0, mdio_data} : read_data, (done && error) ? FAILED : OK};
          left <= (done && error) ? 4'd1 : mdio_done ? 4'd3 : read ? 4'd9 : 4'd1;
          state <= ANSWER;
        end
      default:
        if (tx_ready) begin
          answer <= {8'd0, answer[71:8]};
          left <= left - 1'b1;
          if (left == 4'd1) state <= COMMAND;
        end
    endcase
    if (rst) begin
      state <= COMMAND;
      start <= 1'b0;
      mdio_start <= 1'b0;
    end
  end
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// Management frames to the PHYs (IEEE 802.3 clause 22.2.4.5): the preamble, then the 32 bits given; of a read (op 10) the
// line is left to the PHY from the turnaround on.
`default_nettype none

module mdio_master #(
    parameter HALF_CLOCKS = 16   // of half an MDC period; MDC may have 2.5 MHz
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        start,
    input  wire [31:0] frame,     // start 01, op, PHY, register, turnaround 10, data
    output reg         done,      // pulse
    output reg  [15:0] data,      // what was read
    output reg         mdc,
    input  wire        mdio_i,
    output wire        mdio_o,
    output wire        mdio_t     // released
);
  localparam W = $clog2(HALF_CLOCKS);
  localparam [W-1:0] LAST = W'(HALF_CLOCKS - 1);
  reg [W-1:0] count;
  reg [6:0] left;       // bits of preamble and frame
  reg [31:0] shift;
  reg reads;
  (* async_reg = "true" *) reg [1:0] line;
  assign mdio_o = left > 7'd32 || shift[31];
  assign mdio_t = left == 0 || (reads && left <= 7'd18);
  always_ff @(posedge clk) begin
    line <= {line[0], mdio_i};
    done <= 1'b0;
    count <= (count == LAST) ? {W{1'b0}} : count + 1'b1;
    if (left == 0) begin
      mdc <= 1'b0;
      count <= 0;
      if (start) begin
        left <= 7'd64;
        shift <= frame;
        reads <= frame[29:28] == 2'b10;
      end
    end else if (count == LAST) begin
      mdc <= !mdc;
      if (!mdc) data <= {data[14:0], line[1]};
      else begin
        left <= left - 1'b1;
        if (left <= 7'd32) shift <= {shift[30:0], 1'b0};
        done <= left == 7'd1;
      end
    end
    if (rst) begin
      left <= 0;
      mdc <= 1'b0;
      done <= 1'b0;
    end
  end
endmodule

`default_nettype wire

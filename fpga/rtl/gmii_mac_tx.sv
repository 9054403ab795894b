// SPDX-License-Identifier: MIT OR Apache-2.0
// Gigabit MAC, transmit side: pads to 60 bytes, appends the check sequence, keeps twelve byte times between frames.
// Once a frame has begun, its bytes must come without a pause. If they do not, the frame ends at once, with an error
// on the line and a wrong check sequence, and what comes of it later is thrown away.
`default_nettype none

module gmii_mac_tx (
    input  wire       clk,
    input  wire       rst,
    input  wire [7:0] s_axis_tdata,
    input  wire       s_axis_tvalid,
    input  wire       s_axis_tlast,
    output reg        s_axis_tready,
    output reg  [7:0] gmii_txd,
    output reg        gmii_tx_en,
    output reg        gmii_tx_er,
    output reg        sent,       // pulse: a frame has left
    output reg        cut         // pulse: a frame was cut off
);
  localparam [2:0] IDLE = 3'd0, PREAMBLE = 3'd1, DATA = 3'd2, PAD = 3'd3, FCS = 3'd4, GAP = 3'd5;

  reg [2:0] state;
  reg [3:0] step;      // within preamble, check sequence or gap
  reg [5:0] short_by;  // bytes until the minimum of 60
  reg [31:0] crc;
  reg broken;          // the frame on the line is cut off
  reg rest;            // the rest of a frame that was cut off has still to come
  wire [7:0] body = (state == PAD) ? 8'h00 : s_axis_tdata;
  wire [31:0] crc_next;
  crc32_byte crc_step (.crc(crc), .data(body), .next(crc_next));

  wire minimum = short_by <= 6'd1;

  always_ff @(posedge clk) begin
    gmii_tx_en <= state != IDLE && state != GAP;
    gmii_tx_er <= 1'b0;
    sent <= 1'b0;
    cut <= 1'b0;
    step <= step + 1'b1;
    if (rest && s_axis_tvalid && s_axis_tlast) begin
      rest <= 1'b0;
      s_axis_tready <= 1'b0;
    end
    case (state)
      IDLE: begin
        step <= 0;
        gmii_txd <= 8'h00;
        broken <= 1'b0;
        if (s_axis_tvalid && !rest) state <= PREAMBLE;
      end
      PREAMBLE: begin
        gmii_txd <= (step == 4'd7) ? 8'hd5 : 8'h55;
        crc <= 32'hffffffff;
        short_by <= 6'd60;
        if (step == 4'd7) begin
          state <= DATA;
          s_axis_tready <= 1'b1;
        end
      end
      DATA, PAD: begin
        gmii_txd <= body;
        crc <= crc_next;
        if (!minimum) short_by <= short_by - 1'b1;
        step <= 0;
        if (state == PAD || (s_axis_tvalid && s_axis_tlast)) begin
          state <= minimum ? FCS : PAD;
          s_axis_tready <= 1'b0;
        end else if (!s_axis_tvalid) begin
          gmii_tx_er <= 1'b1;
          broken <= 1'b1;
          rest <= 1'b1;
          cut <= 1'b1;
          state <= FCS;
        end
      end
      FCS: begin
        gmii_txd <= broken ? crc[7:0] : ~crc[7:0];
        crc <= crc >> 8;
        if (step == 4'd3) begin
          state <= GAP;
          step <= 0;
          sent <= !broken;
        end
      end
      default: begin
        gmii_txd <= 8'h00;
        // Eleven here and one in IDLE make twelve.
        if (step == 4'd10) state <= IDLE;
      end
    endcase
    if (rst) begin
      // After a frame that was cut off by the reset: its gap.
      state <= GAP;
      step <= 0;
      rest <= 1'b0;
      s_axis_tready <= 1'b0;
      gmii_tx_en <= 1'b0;
      gmii_txd <= 8'h00;
    end
  end
endmodule

`default_nettype wire

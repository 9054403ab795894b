// SPDX-License-Identifier: MIT OR Apache-2.0
// The rules of the card's AXI4-Streams: nothing is offered out of reset; what is offered is held until it is taken
// (handshake_checker); all beats of a frame but the last are full; no frame is longer than the longest Ethernet
// frame; what goes beside a frame (destination, class, queue) stays the same from its first beat to its last; and
// where a receiver counts on idle cycles between frames, they are there.
`default_nettype none

module axis_checker #(
    parameter W = 64,            // bits of data
    parameter BEATS = 190,       // of the longest frame: 1514 bytes
    parameter GAP_CYCLES = 0,    // idle cycles between frames, at least; up to 7
    parameter SIDE = 1           // bits beside the frame
) (
    input wire            clk,
    input wire            rst,
    input wire            tvalid,
    input wire            tready,  // one where the stream cannot be refused
    input wire [W-1:0]    tdata,
    input wire [W/8-1:0]  tkeep,
    input wire            tlast,
    input wire [1:0]      tuser,
    input wire [SIDE-1:0] side
);
  handshake_checker #(.W(W + W / 8 + 3 + SIDE)) held (
      .clk(clk), .rst(rst), .valid(tvalid), .ready(tready), .payload({tdata, tkeep, tlast, tuser, side})
  );
`ifdef ASSERTIONS
  // Bytes from the lowest on, all of them but in the last beat.
  wire full = &tkeep;
  wire ragged = (tkeep & (tkeep + 1'b1)) != 0 || !tkeep[0];
  reg [11:0] beats = 0;          // of the frame so far
  reg [SIDE-1:0] side_of_frame;
  reg [2:0] idle = 3'd7;         // cycles since the last frame
  reg was_reset = 1'b0;
  wire beat = tvalid && tready;
  always @(posedge clk) begin
    was_reset <= rst;
    if (rst) begin
      beats <= 0;
      idle <= 3'd7;
    end else begin
      if (beat && tlast) idle <= 0;
      else if (idle != 3'd7) idle <= idle + 1'b1;
      if (beat) begin
        beats <= tlast ? 12'd0 : beats + 1'b1;
        side_of_frame <= side;
      end
      assert (!(was_reset && tvalid));
      if (tvalid) begin
        assert (full || (tlast && !ragged));
        assert (beats < BEATS[11:0]);
        assert (beats == 0 || side == side_of_frame);
        assert (beats != 0 || idle >= GAP_CYCLES[2:0]);
      end
    end
  end
`endif
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// A line on which anything may happen. Frames come out byte by byte as they were on it, without the last four bytes, up to
// the longest length; what is not told to be wrong had a preamble of 55 and d5, no line error, and 64 bytes at least; no two
// begin closer than 73 byte times. (That the check sequence is the right one, simulation shows.)
module fv_gmii_mac_rx (
    input wire       clk,
    input wire [7:0] rxd,
    input wire       rx_dv,
    input wire       rx_er
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  wire [7:0] tdata;
  wire tvalid, tlast, no_sfd, crowded;
  wire [1:0] tuser;
  gmii_mac_rx dut (
      .clk(clk), .rst(rst), .gmii_rxd(rxd), .gmii_rx_dv(rx_dv), .gmii_rx_er(rx_er), .m_axis_tdata(tdata),
      .m_axis_tvalid(tvalid), .m_axis_tlast(tlast), .m_axis_tuser(tuser), .no_sfd(no_sfd), .crowded(crowded)
  );
  // The carrier: silent before, only 55 so far, the frame's bytes since the delimiter; and what came out of it.
  reg preamble = 1'b0, inside = 1'b0, silent = 1'b0, error, ended = 1'b0;
  reg [7:0] count = 0, out = 0, count_1, value;
  reg error_1, held = 1'b0;
  reg [7:0] since = 255;
  (* anyconst *) reg [7:0] chosen;
  always @(posedge clk) if (!rst) begin
    if (since != 255) since <= since + 1'b1;
    silent <= !rx_dv;
    ended <= 1'b0;
    preamble <= rx_dv && !inside && rxd == 8'h55 && (preamble || silent);
    count_1 <= count;
    error_1 <= error;
    if (!inside) begin
      if (rx_dv && rxd == 8'hd5 && (preamble || silent) && since >= 72) begin
        inside <= 1'b1;
        since <= 0;
        count <= 0;
        error <= 1'b0;
        held <= 1'b0;
      end
    end else if (rx_dv) begin
      count <= count + 1'b1;
      error <= error || rx_er;
      if (count == chosen) begin
        value <= rxd;
        held <= 1'b1;
      end
    end else begin
      inside <= 1'b0;
      ended <= 1'b1;
    end
    assert (tlast == ended && (!tlast || tvalid));
    if (tvalid) begin
      out <= tlast ? 8'd0 : out + 1'b1;
      if (!tlast || count_1 >= 5) assert (out + 5 == count_1);
      if (held && out == chosen && count_1 >= 5) assert (tdata == value);
    end
    if (tlast && tuser == 0) assert (!error_1 && count_1 >= 64);
    if (tlast && count_1 < 64) assert (tuser == 2);
    if (tlast && count_1 >= 64 && error_1) assert (tuser == 1);
`ifdef REACH
    assert (!(tlast && count_1 == 64 && tuser == 1 && !error_1));
`endif
  end
endmodule

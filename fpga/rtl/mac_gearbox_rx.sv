// SPDX-License-Identifier: MIT OR Apache-2.0
// Eight bytes to one word: the byte stream of the MAC becomes 64-bit words, first byte in bits 7:0. One-hot lane
// enables, because a shifted or indexed write does not reach 125 MHz.
`default_nettype none

module mac_gearbox_rx (
    input  wire        clk,
    input  wire        rst,
    input  wire [7:0]  s_axis_tdata,
    input  wire        s_axis_tvalid,
    input  wire        s_axis_tlast,
    input  wire [1:0]  s_axis_tuser,
    output reg  [63:0] m_axis_tdata,
    output reg  [7:0]  m_axis_tkeep,
    output reg         m_axis_tvalid,
    output reg         m_axis_tlast,
    output reg  [1:0]  m_axis_tuser
);
  reg [7:0] lane, keep;
  integer i;
  always_ff @(posedge clk) begin
    m_axis_tvalid <= s_axis_tvalid && (lane[7] || s_axis_tlast);
    m_axis_tlast <= s_axis_tlast;
    m_axis_tuser <= s_axis_tuser;
    m_axis_tkeep <= keep;
    for (i = 0; i < 8; i = i + 1) if (s_axis_tvalid && lane[i]) m_axis_tdata[8*i+:8] <= s_axis_tdata;
    if (rst) begin
      lane <= 8'd1;
      keep <= 8'd1;
      m_axis_tvalid <= 1'b0;
    end else if (s_axis_tvalid) begin
      lane <= s_axis_tlast ? 8'd1 : {lane[6:0], lane[7]};
      keep <= (s_axis_tlast || lane[7]) ? 8'd1 : {keep[6:0], 1'b1};
    end
  end
endmodule

`default_nettype wire

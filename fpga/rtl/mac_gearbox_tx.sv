// SPDX-License-Identifier: MIT OR Apache-2.0
// One word to eight bytes, without a pause between words as long as the next one is there in time: it is taken a cycle
// after the one before has begun, so that what the MAC takes does not reach back into the clock crossing at once.
`default_nettype none

module mac_gearbox_tx (
    input  wire        clk,
    input  wire        rst,
    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tvalid,
    input  wire        s_axis_tlast,
    output wire        s_axis_tready,
    output wire [7:0]  m_axis_tdata,
    output wire        m_axis_tvalid,
    output wire        m_axis_tlast,
    input  wire        m_axis_tready
);
  reg [63:0] next_word, word;
  reg [6:0] next_more, more;    // a one for every byte after the current one
  reg next_valid, next_last, valid, last;
  wire empty_next = !valid || (m_axis_tready && !more[0]);

  assign s_axis_tready = !next_valid;
  assign m_axis_tdata = word[7:0];
  assign m_axis_tvalid = valid;
  assign m_axis_tlast = last && !more[0];
  // Bit 0 is set in every word.
  wire unused = s_axis_tkeep[0];

  always_ff @(posedge clk) begin
    if (s_axis_tready) begin
      next_valid <= s_axis_tvalid;
      next_word <= s_axis_tdata;
      next_more <= s_axis_tkeep[7:1];
      next_last <= s_axis_tlast;
    end
    if (empty_next) begin
      valid <= next_valid;
      word <= next_word;
      more <= next_more;
      last <= next_last;
      next_valid <= s_axis_tready && s_axis_tvalid;
    end else if (m_axis_tready) begin
      word <= word >> 8;
      more <= more >> 1;
    end
    if (rst) begin
      next_valid <= 1'b0;
      valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire

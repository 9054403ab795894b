// SPDX-License-Identifier: MIT OR Apache-2.0
// The output side: a FIFO for each path, and the scheduler between them and the line.
`default_nettype none

module output_stage #(
    parameter CAP_WORDS = 1920
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        fast_valid,
    input  wire [63:0] fast_data,
    input  wire        fast_last,
    input  wire        fast_cancel,
    output wire [11:0] fast_free,
    input  wire        slow_valid,
    input  wire [63:0] slow_data,
    input  wire        slow_last,
    input  wire        slow_cancel,
    output wire [11:0] slow_free,
    output wire        overflow,     // pulse
    output wire        fast_done,    // pulse: a packet has left its FIFO
    output wire        slow_done,
    output wire [63:0] m_axis_tdata,
    output wire [7:0]  m_axis_tkeep,
    output wire        m_axis_tvalid,
    input  wire        m_axis_tready,
    output wire        m_axis_tlast
);
  wire fast_packet, fast_rd, slow_packet, slow_rd, fast_overflow, slow_overflow;
  wire [63:0] fast_word, slow_word;
  assign overflow = fast_overflow || slow_overflow;
  output_fifo #(.CAP_WORDS(CAP_WORDS)) fast_out (
      .clk(clk), .rst(rst), .wr_valid(fast_valid), .wr_data(fast_data), .wr_last(fast_last), .wr_cancel(fast_cancel),
      .free_words(fast_free), .overflow(fast_overflow), .rd_packet(fast_packet), .rd_en(fast_rd),
      .rd_data(fast_word), .rd_done(fast_done)
  );
  output_fifo #(.CAP_WORDS(CAP_WORDS)) slow_out (
      .clk(clk), .rst(rst), .wr_valid(slow_valid), .wr_data(slow_data), .wr_last(slow_last), .wr_cancel(slow_cancel),
      .free_words(slow_free), .overflow(slow_overflow), .rd_packet(slow_packet), .rd_en(slow_rd),
      .rd_data(slow_word), .rd_done(slow_done)
  );
  output_scheduler scheduler (
      .clk(clk), .rst(rst), .slow_packet(slow_packet), .slow_rd_en(slow_rd), .slow_data(slow_word),
      .slow_done(slow_done), .fast_packet(fast_packet), .fast_rd_en(fast_rd), .fast_data(fast_word),
      .fast_done(fast_done), .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast)
  );
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// Four channels, one bus master: the requests are served round robin, one sequence each. A channel holds its request
// until done, or failed; its data are taken by dma_pop, first word falling through.
`default_nettype none

module dma_engine (
    input  wire         clk,
    input  wire         rst,
    input  wire [3:0]   valid,
    input  wire [3:0]   read,       // memory read (no data), else write
    input  wire [127:0] addr,
    input  wire [39:0]  words,      // 1 to 512
    input  wire [255:0] data,
    output wire [3:0]   pop,
    output wire [3:0]   accept,     // pulse: the oldest word popped and not yet accepted has arrived
    output reg  [3:0]   done,
    output reg          error,      // with done: not all words have arrived
    // Bus master.
    output reg          m_start,
    output wire         m_read,     // with m_start, as are address and words
    output wire [31:0]  m_addr,
    output wire [9:0]   m_words,
    output wire [63:0]  m_data,
    input  wire         m_pop,
    input  wire         m_accept,
    input  wire         m_done,
    input  wire         m_error
);
  reg busy;
  reg [1:0] channel;
  wire [3:0] grant;
  wire [1:0] pick;
  wire any;
  wire take = any && !busy && done == 0;
  rr_arbiter #(.N(4)) turn (
      .clk(clk), .rst(rst), .req(valid), .take(take), .grant(grant), .index(pick), .any(any)
  );
  wire unused = |grant;
  wire [9:0] words_of[0:3];
  genvar g;
  generate
    for (g = 0; g < 4; g = g + 1) begin : channels
      assign words_of[g] = words[10*g+:10];
    end
  endgenerate
  // The master takes these a cycle after the channel has been chosen.
  assign m_read = read[channel];
  assign m_addr = addr[32*channel+:32];
  assign m_words = words_of[channel];
  assign m_data = data[64*channel+:64];
  assign pop = m_pop ? (4'd1 << channel) : 4'd0;
  assign accept = m_accept ? (4'd1 << channel) : 4'd0;

  always_ff @(posedge clk) begin
    m_start <= 1'b0;
    done <= 0;
    if (take) begin
      busy <= 1'b1;
      channel <= pick;
      m_start <= 1'b1;
    end
    if (m_done) begin
      busy <= 1'b0;
      done <= 4'd1 << channel;
      error <= m_error;
    end
    if (rst) begin
      busy <= 1'b0;
      m_start <= 1'b0;
      done <= 0;
    end
  end
endmodule

`default_nettype wire

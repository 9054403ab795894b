// SPDX-License-Identifier: MIT OR Apache-2.0
// Four channels that ask at will and hold what they ask, and a bus master that takes its time. One sequence at a time; it
// is the chosen channel's, whose words are taken and whose end is told to it alone; and a channel that asks is passed
// over three times at most.
module fv_dma_engine (
    input wire       clk,
    input wire [3:0] asks,
    input wire       pops,
    input wire       accepts,
    input wire       ends,
    input wire       fails
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg [3:0] read;
  (* anyconst *) reg [1:0] who;
  reg [3:0] valid = 0;
  wire [3:0] pop, accept, done;
  wire error, m_start, m_read;
  wire [31:0] m_addr;
  wire [9:0] m_words;
  wire [63:0] m_data;
  reg running = 1'b0;
  reg [1:0] channel;
  wire m_pop = running && pops;
  wire m_accept = running && accepts;
  wire m_done = running && ends;
  // A channel's address, words and data tell its number.
  dma_engine dut (
      .clk(clk), .rst(rst), .valid(valid), .read(read), .addr({32'd3, 32'd2, 32'd1, 32'd0}),
      .words({10'd4, 10'd3, 10'd2, 10'd1}), .data({64'd3, 64'd2, 64'd1, 64'd0}), .pop(pop), .accept(accept),
      .done(done), .error(error), .m_start(m_start), .m_read(m_read), .m_addr(m_addr), .m_words(m_words),
      .m_data(m_data), .m_pop(m_pop), .m_accept(m_accept), .m_done(m_done), .m_error(fails)
  );
  reg [2:0] passed = 0;
  reg ended = 1'b0, failed;
  always @(posedge clk) if (!rst) begin
    valid <= (valid & ~done) | asks;
    ended <= m_done;
    failed <= fails;
    if (m_start) begin
      assert (!running && valid[m_addr[1:0]] && m_read == read[m_addr[1:0]]);
      running <= 1'b1;
      channel <= m_addr[1:0];
      passed <= (m_addr[1:0] == who) ? 3'd0 : passed + 1'b1;
    end
    if (running) begin
      assert (m_addr == {30'd0, channel} && m_words == {8'd0, channel} + 10'd1 && m_data == {62'd0, channel});
      assert (pop == {3'd0, m_pop} << channel && accept == {3'd0, m_accept} << channel);
    end else assert (pop == 0 && accept == 0);
    if (m_done) running <= 1'b0;
    assert (done == (ended ? 4'd1 << channel : 4'd0));
    if (ended) assert (error == failed);
    if (!valid[who]) passed <= 0;
    assert (passed <= 3);
  end
endmodule

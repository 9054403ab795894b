// SPDX-License-Identifier: MIT OR Apache-2.0
// Words of two sources in any order, right or wrong, and grants at will. What goes to the FIFO is of the card that has the
// grant: whole packets after their header words, as long as these say, no word more than its burst has announced and the
// grant allows; after a word that is wrong, nothing of that source until its next burst begins, and it is told; the trailing
// REQ comes through once, at the end of a burst that was right.
module fv_burst_receiver (
    input wire        clk,
    input wire        valid,
    input wire        error,
    input wire        source_bit,
    input wire        begins,
    input wire [63:0] data,
    input wire        grants,
    input wire        to,
    input wire        revokes
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  // Cards 1 and 2 send to card 0.
  wire [1:0] source = source_bit ? 2'd2 : 2'd1;
  (* anyconst *) reg [12:0] granted;
  reg serving = 1'b0;
  reg [1:0] served;
  wire wr_valid = valid && !rst;
  wire out_valid, out_last, word, tail_valid, stale_packet, broken, protocol_error;
  wire [63:0] out_data;
  wire [11:0] tail_high, tail_low;
  wire [1:0] broken_source;
  burst_receiver dut (
      .clk(clk), .rst(rst), .own_id(3'd0), .wr_valid(wr_valid), .wr_error(error), .wr_source(source),
      .wr_first(begins), .wr_data(data), .serving(serving), .serving_source(served), .granted_words(granted),
      .out_valid(out_valid), .out_data(out_data), .out_last(out_last), .word(word), .tail_valid(tail_valid),
      .tail_high(tail_high), .tail_low(tail_low), .stale_packet(stale_packet), .broken(broken),
      .broken_source(broken_source), .protocol_error(protocol_error)
  );
  // The grant, as the response scheduler gives it: over when the trailing REQ has come, or taken back.
  reg was_word = 1'b0, was_served, was_begin, was_error;
  reg [63:0] was_data;
  reg [1:0] was_source;
  // Of the burst of the card that is served: words stored, words its header allows, words left of a packet.
  reg in_burst = 1'b0;
  reg [12:0] stored, allowed;
  reg [7:0] packet = 0;
  reg [1:0] silent = 0;    // sources whose burst is broken
  wire [7:0] words = was_data[10:3] + {7'd0, was_data[2:0] != 0};
  always @(posedge clk) if (!rst) begin
    was_word <= wr_valid;
    was_served <= serving && served == source;
    was_begin <= begins;
    was_error <= error;
    was_data <= data;
    was_source <= source;
    if (!serving && grants) begin
      serving <= 1'b1;
      served <= to ? 2'd2 : 2'd1;
      in_burst <= 1'b0;
      packet <= 0;
    end else if (serving && (revokes || tail_valid)) serving <= 1'b0;
    if (out_valid || tail_valid) assert (was_word && was_served && !was_error);
    if (word) assert (was_word && was_served);
    if (out_valid || tail_valid) assert (!silent[was_source[1]] && !was_begin);
    if (was_word && was_begin) begin
      silent[was_source[1]] <= broken;
      if (!broken && was_served) begin
        assert (was_data[63:60] == 4'd3 && {1'b0, was_data[11:0]} <= granted);
        in_burst <= 1'b1;
        allowed <= {1'b0, was_data[11:0]};
        stored <= 0;
        packet <= 0;
      end
    end
    if (out_valid) begin
      assert (in_burst && out_data == was_data && stored < allowed && allowed <= granted);
      stored <= stored + 1'b1;
      if (packet == 0) begin
        assert (was_data[63:60] == 4'd4 && words != 0 && words <= 190 && !out_last);
        packet <= words;
      end else begin
        assert (out_last == (packet == 1));
        packet <= packet - 1'b1;
      end
    end
    if (tail_valid) begin
      assert (in_burst && packet == 0 && stored == allowed && was_data[63:59] == 5'b00011);
      assert (tail_high == was_data[30:19] && tail_low == was_data[14:3]);
      in_burst <= 1'b0;
    end
    if (broken) begin
      assert (was_word && broken_source == was_source);
      if (was_error || protocol_error) silent[was_source[1]] <= 1'b1;
    end
    if (was_word && was_error && !silent[was_source[1]]) assert (broken || !was_begin);
    if (protocol_error) assert (broken && !was_error);
`ifdef REACH
    // A packet of two words and its trailing REQ, while the other source is silent.
    assert (!(tail_valid && stored == 3 && silent != 0));
`endif
  end
endmodule

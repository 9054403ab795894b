// SPDX-License-Identifier: MIT OR Apache-2.0
// How many packets at the head of a queue fit a grant: walks the length memory, a packet a cycle, and stops at the
// first that does not fit. Results hold until the next start.
`default_nettype none

module length_scan (
    input  wire        clk,
    input  wire        rst,
    input  wire        start,
    input  wire [7:0]  packets,      // in the queue
    input  wire [11:0] grant_words,
    output reg  [7:0]  offset,       // into the length memory, which answers two cycles later
    input  wire [10:0] len_bytes,
    output reg         done,         // pulse
    output reg  [7:0]  count,
    output reg  [11:0] words         // of these packets with their headers
);
  reg busy, stop;
  reg [7:0] left;
  reg [2:0] flight;
  reg [11:0] packet_words;
  wire issue = busy && !stop && left != 0;
  wire [12:0] total = {1'b0, words} + {1'b0, packet_words};
  wire fits = total <= {1'b0, grant_words};

  always_ff @(posedge clk) begin
    done <= 1'b0;
    flight <= {flight[1:0], issue};
    packet_words <= {4'd0, len_bytes[10:3]} + {11'd0, len_bytes[2:0] != 0} + 12'd1;
    if (issue) begin
      offset <= offset + 1'b1;
      left <= left - 1'b1;
    end
    if (flight[2] && !stop) begin
      if (fits) begin
        count <= count + 1'b1;
        words <= total[11:0];
      end else stop <= 1'b1;
    end
    if (busy && flight == 0 && (stop || left == 0)) begin
      busy <= 1'b0;
      done <= 1'b1;
    end
    if (start) begin
      busy <= 1'b1;
      stop <= 1'b0;
      left <= packets;
      offset <= 0;
      count <= 0;
      words <= 0;
    end
    if (rst) begin
      busy <= 1'b0;
      flight <= 0;
      done <= 1'b0;
    end
  end
endmodule

`default_nettype wire

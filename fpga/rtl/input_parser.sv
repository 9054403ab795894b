// SPDX-License-Identifier: MIT OR Apache-2.0
// Finds the IPv4 header in the word stream: ethertype, version and IHL, ToS, TTL, protocol, addresses and whether
// the header checksum is right. The sum is taken a word at a time over three pipeline stages, because one adder
// for ten terms does not reach 66 MHz.
//
// hdr_valid pulses two cycles after the word with the last header byte (or the end of a shorter frame); the fields
// are then valid, and stay until the next frame's second word. checksum_ok follows two cycles later and stays until
// two cycles after the next hdr_valid.
`default_nettype none

module input_parser (
    input  wire        clk,
    input  wire        rst,
    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tvalid,
    input  wire        s_axis_tlast,
    input  wire [47:0] own_mac,
    output reg         is_ipv4,        // version 4, header within the frame
    output reg         forwardable,    // to our address, no options, total length at least 20, no martian
    output wire [79:0] key,            // ToS, source, destination, protocol
    output reg         ttl_expired,    // TTL 0 or 1
    output reg  [15:0] total_length,
    output reg         hdr_valid,
    output reg         checksum_ok
);
  reg [2:0] index;     // word of the frame, stops at 5
  reg [47:0] dst_mac;
  reg ethertype_ok;
  reg [7:0] version_ihl, tos, ttl, protocol;
  reg [31:0] src_addr, dst_addr;
  reg captured, whole, for_us;
  wire unused = |{s_axis_tkeep, ttl};
  assign key = {tos, src_addr, dst_addr, protocol};

  wire [63:0] w = s_axis_tdata;
  wire fifth = index == 3'd4;
  wire ends_early = s_axis_tlast && index < 3'd4;

  // 16-bit fields of a word, in network byte order.
  wire [15:0] h0 = {w[7:0], w[15:8]}, h1 = {w[23:16], w[31:24]};
  wire [15:0] h2 = {w[39:32], w[47:40]}, h3 = {w[55:48], w[63:56]};

  // Addresses that no router forwards from or to (RFC 1812 section 5.3.7, RFC 3927 section 2.7): this network,
  // loopback, link-local, multicast, reserved, broadcast.
  function automatic martian(input [15:0] high_half);
    martian = high_half[15:8] == 8'd0 || high_half[15:8] == 8'd127 || high_half == {8'd169, 8'd254}
        || high_half[15:13] == 3'b111;
  endfunction

  reg [17:0] part;
  reg [1:0] part_kind;  // 0 none, 1 first of a header, 2 further
  reg [19:0] sum;
  reg [16:0] folded;
  reg hdr_valid_q;

  always_ff @(posedge clk) begin
    captured <= s_axis_tvalid && (fifth || ends_early);
    part_kind <= 2'd0;
    if (s_axis_tvalid) begin
      index <= s_axis_tlast ? 3'd0 : (index == 3'd5) ? 3'd5 : index + 1'b1;
      case (index)
        3'd0: dst_mac <= w[47:0];
        3'd1: begin
          ethertype_ok <= h2 == 16'h0800;
          {version_ihl, tos} <= h3;
          part <= {2'b0, h3};
          part_kind <= 2'd1;
        end
        3'd2: begin
          total_length <= h0;
          {ttl, protocol} <= h3;
          part <= ({2'b0, h0} + {2'b0, h1}) + ({2'b0, h2} + {2'b0, h3});
          part_kind <= 2'd2;
        end
        3'd3: begin
          src_addr <= {h1, h2};
          dst_addr[31:16] <= h3;
          part <= ({2'b0, h0} + {2'b0, h1}) + ({2'b0, h2} + {2'b0, h3});
          part_kind <= 2'd2;
        end
        3'd4: begin
          dst_addr[15:0] <= h0;
          part <= {2'b0, h0};
          part_kind <= 2'd2;
        end
        default: ;
      endcase
      whole <= fifth && !(s_axis_tlast && !s_axis_tkeep[1]);
      if (index == 3'd1) for_us <= dst_mac == own_mac;
    end
    // One cycle after capture: what only this block needs to know.
    hdr_valid <= captured;
    if (captured) begin
      is_ipv4 <= whole && ethertype_ok && version_ihl[7:4] == 4'd4;
      forwardable <= whole && ethertype_ok && version_ihl == 8'h45 && for_us && total_length >= 16'd20
          && !martian(src_addr[31:16]) && !martian(dst_addr[31:16]);
      ttl_expired <= ttl[7:1] == 0;
    end
    if (part_kind == 2'd1) sum <= {2'b0, part};
    else if (part_kind == 2'd2) sum <= sum + {2'b0, part};
    folded <= {1'b0, sum[15:0]} + {13'd0, sum[19:16]};
    hdr_valid_q <= hdr_valid;
    if (hdr_valid_q) checksum_ok <= folded == 17'h0ffff;
    if (rst) begin
      index <= 0;
      captured <= 1'b0;
      hdr_valid <= 1'b0;
      hdr_valid_q <= 1'b0;
    end
  end
endmodule

`default_nettype wire

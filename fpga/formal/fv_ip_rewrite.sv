// SPDX-License-Identifier: MIT OR Apache-2.0
// A fast-path frame with any addresses, TTL, protocol and right header checksum: what comes out differs in the Ethernet
// addresses, the TTL, which is one less, and the checksum, which is what a full recomputation gives. The rest of the
// header enters by its ones' complement sum alone, which may be anything but zero, because the version is not zero.
module fv_ip_rewrite (
    input wire clk,
    input wire valid
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg [15:0] rest, checksum;
  (* anyconst *) reg [7:0] ttl, protocol;
  (* anyconst *) reg [47:0] next_hop, source;
  (* anyconst *) reg write_source;
  (* anyconst *) reg [63:0] word_0, word_1, word_4;
  (* anyconst *) reg [47:0] word_2, word_3;
  // RFC 1071: sums with end-around carry.
  function [15:0] add(input [15:0] a, input [15:0] b);
    reg [16:0] sum;
    begin
      sum = {1'b0, a} + {1'b0, b};
      add = sum[15:0] + {15'd0, sum[16]};
    end
  endfunction
  wire [15:0] recomputed = ~add(rest, {ttl - 8'd1, protocol});
  reg [2:0] index = 0, out = 0;
  wire ready;
  wire [63:0] swapped = {word_3, checksum[7:0], checksum[15:8]};
  wire [63:0] word = (index == 0) ? word_0 : (index == 1) ? word_1 : (index == 2) ? {protocol, ttl, word_2}
      : (index == 3) ? swapped : word_4;
  wire [5:0] mac_addr;
  reg [47:0] mac_data;
  wire [63:0] tdata;
  wire tvalid, tlast, tuser;
  wire taken = ready && valid && index < 5;
  ip_rewrite dut (
      .clk(clk), .rst(rst), .s_axis_tdata(word), .s_axis_tkeep(8'hff), .s_axis_tvalid(valid && index < 5),
      .s_axis_tlast(index == 4), .s_axis_tuser(2'd0), .s_axis_tready(ready), .dec_valid(1'b1), .dec_ready(),
      .dec_fast(1'b1), .dec_no_port(1'b0), .dec_drop_ttl(1'b0), .dec_drop_checksum(1'b0),
      .dec_write_source(write_source), .dec_dest(3'd1), .dec_high(1'b0), .dec_entry(5'd18),
      .dec_total_length(16'd20), .mac_addr(mac_addr), .mac_busy(), .mac_data(mac_data), .m_axis_tdata(tdata),
      .m_axis_tkeep(), .m_axis_tvalid(tvalid),
      .m_axis_tlast(tlast), .m_axis_tuser(tuser), .m_axis_tdest(), .m_axis_thigh(), .events()
  );
  always @(posedge clk) begin
    assume (rest != 0 && ttl > 1 && add(add(rest, {ttl, protocol}), checksum) == 16'hffff);
    mac_data <= (mac_addr == 6'd37) ? source : (mac_addr == 6'd36) ? next_hop : 48'd0;
    if (!rst) begin
      if (taken) index <= index + 1'b1;
      if (tvalid) begin
        out <= out + 1'b1;
        assert (tlast == (out == 4) && !(tlast && tuser));
        case (out)
          3'd0: assert (tdata == {write_source ? source[15:0] : word_0[63:48], next_hop});
          3'd1: assert (tdata == {word_1[63:32], write_source ? source[47:16] : word_1[31:0]});
          3'd2: assert (tdata == {protocol, ttl - 8'd1, word_2});
          3'd3: assert (tdata == {word_3, recomputed[7:0], recomputed[15:8]});
          default: assert (tdata == word_4);
        endcase
      end
    end
  end
endmodule

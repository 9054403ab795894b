// SPDX-License-Identifier: MIT OR Apache-2.0
// Words of any frames, at any distance, of any length. The fields are those of the frame's bytes when hdr_valid says so,
// two cycles after the header's last byte or the end of a frame that has none, and until the next frame's second word;
// the checksum's two cycles later. Of a frame that ends within its header, nothing but that is promised.
module fv_input_parser (
    input wire        clk,
    input wire [63:0] word,
    input wire [7:0]  keep,
    input wire        valid,
    input wire        last
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  (* anyconst *) reg [47:0] own_mac;
  wire is_ipv4, forwardable, ttl_expired, hdr_valid, checksum_ok;
  wire [79:0] key;
  wire [15:0] total_length;
  input_parser dut (
      .clk(clk), .rst(rst), .s_axis_tdata(word), .s_axis_tkeep(keep), .s_axis_tvalid(valid && !rst),
      .s_axis_tlast(last), .own_mac(own_mac), .is_ipv4(is_ipv4), .forwardable(forwardable), .key(key),
      .ttl_expired(ttl_expired), .total_length(total_length), .hdr_valid(hdr_valid), .checksum_ok(checksum_ok)
  );

  // The frame's words, and whether it had a whole header; until the next frame's second word.
  reg [2:0] index = 0;
  reg [63:0] first_word, this_first, words_1, words_2, words_3, words_4;
  wire taken = valid && !rst;
  wire ends = taken && (index == 4 || (last && index < 4));
  reg ended = 1'b0, told = 1'b0, told_3 = 1'b0, told_4 = 1'b0, held = 1'b0, header_1, header = 1'b0;
  always @(posedge clk) begin
    if (taken) begin
      index <= last ? 3'd0 : (index < 5) ? index + 1'b1 : index;
      case (index)
        3'd0: first_word <= word;
        3'd1: {this_first, words_1} <= {first_word, word};
        3'd2: words_2 <= word;
        3'd3: words_3 <= word;
        3'd4: words_4 <= word;
        default: ;
      endcase
    end
    ended <= ends;
    told <= ended;
    told_3 <= told;
    told_4 <= told_3;
    if (taken) header_1 <= index == 4 && (!last || keep[1]);
    if (ended) header <= header_1;
    if (ended) held <= 1'b1;
    else if (taken && index == 1) held <= 1'b0;
  end

  // In network byte order, the header from its fifteenth byte of the frame on.
  function [63:0] ordered(input [63:0] w);
    ordered = {w[7:0], w[15:8], w[23:16], w[31:24], w[39:32], w[47:40], w[55:48], w[63:56]};
  endfunction
  wire [255:0] f = {ordered(words_1), ordered(words_2), ordered(words_3), ordered(words_4)};
  wire [15:0] ethertype = f[255-32-:16];
  wire [7:0] version_ihl = f[255-48-:8], tos = f[255-56-:8], ttl = f[255-112-:8], protocol = f[255-120-:8];
  wire [15:0] length = f[255-64-:16];
  wire [31:0] src = f[255-144-:32], dst = f[255-176-:32];
  // RFC 1812, section 5.3.7, and RFC 3927, section 2.7, as prefixes.
  function martian(input [31:0] address);
    martian = address[31:24] == 0 || address[31:24] == 127 || address[31:16] == 16'ha9fe || address >= 32'he0000000;
  endfunction
  // Addresses in registers have their first byte lowest, as the words have.
  wire ipv4 = header && ethertype == 16'h0800 && version_ihl[7:4] == 4;
  wire for_routers = ipv4 && version_ihl[3:0] == 5 && this_first[47:0] == own_mac && length >= 20 && !martian(src) && !martian(dst);

  // RFC 1071: the header's ten half words, added as the words come, so that a prover sees at once what is alike.
  function [17:0] half_words(input [63:0] w);
    half_words = ({2'd0, w[63:48]} + {2'd0, w[47:32]}) + ({2'd0, w[31:16]} + {2'd0, w[15:0]});
  endfunction
  reg [17:0] part;
  reg first = 1'b0, further = 1'b0;
  reg [19:0] sum;
  wire [63:0] w = ordered(word);
  always @(posedge clk) begin
    first <= taken && index == 1;
    further <= taken && index > 1 && index < 5;
    if (taken)
      case (index)
        3'd1: part <= {2'd0, w[15:0]};
        3'd2, 3'd3: part <= half_words(w);
        3'd4: part <= {2'd0, w[63:48]};
        default: ;
      endcase
    if (first) sum <= {2'd0, part};
    else if (further) sum <= sum + {2'd0, part};
  end
  wire [16:0] once = {1'b0, sum[15:0]} + {13'd0, sum[19:16]};
  wire [15:0] twice = once[15:0] + {15'd0, once[16]};
  reg right_3, right, known_3, known = 1'b0;

  always @(posedge clk) begin
    if (told) {right_3, known_3} <= {twice == 16'hffff, header};
    if (told_3) {right, known} <= {right_3, known_3};
    if (!rst) begin
      assert (hdr_valid == told);
      if (told && !header) assert (!is_ipv4 && !forwardable);
      if (held) begin
        assert (is_ipv4 == ipv4);
        assert (forwardable == for_routers);
        if (header) begin
          assert (ttl_expired == (ttl < 2));
          assert (key == {tos, src, dst, protocol});
          assert (total_length == length);
        end
      end
      if (known) assert (checksum_ok == right);
`ifdef REACH
      assert (!(told_4 && known && right && held && forwardable && !ttl_expired && index == 5));
`endif
    end
  end
endmodule

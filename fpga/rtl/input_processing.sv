// Everything between the MAC's words and the input FIFOs: parser, route lookup, classifier and rewrite, with the
// words waiting in a small buffer until the decision is made. Never stalls the MAC.
`default_nettype none

module input_processing #(
    parameter NICS = 4,           // cards that can be addressed; a power of two
    parameter EW = $clog2(NICS)
) (
    input  wire               clk,
    input  wire               rst,
    input  wire [63:0]        s_axis_tdata,
    input  wire [2:0]         s_axis_tbytes,
    input  wire               s_axis_tvalid,
    input  wire               s_axis_tlast,
    input  wire [1:0]         s_axis_tuser,
    // Configuration.
    input  wire [2:0]         own_id,
    input  wire [47:0]        own_mac,
    input  wire               write_source_mac,
    input  wire               drop_bad_checksum,
    input  wire               ttl_to_host,
    input  wire [32*NICS-1:0] route_value,
    input  wire [32*NICS-1:0] route_mask,
    input  wire [NICS-1:0]    route_valid,
    input  wire [3*NICS-1:0]  route_nic,
    input  wire [80*NICS-1:0] class_value,
    input  wire [80*NICS-1:0] class_mask,
    input  wire [NICS-1:0]    class_enable,
    output wire [EW:0]        mac_addr,
    input  wire [47:0]        mac_data,
    // To the input FIFOs; the own number is the slow path.
    output wire [63:0]        m_axis_tdata,
    output wire [2:0]         m_axis_tbytes,
    output wire               m_axis_tvalid,
    output wire               m_axis_tlast,
    output wire               m_axis_tuser,
    output wire [2:0]         m_axis_tdest,
    output wire               m_axis_thigh,
    output wire [7:0]         events
);
  wire is_ipv4, forwardable, ttl_expired, hdr_valid, checksum_ok, decide, hit;
  wire [79:0] key;
  wire [31:0] dst;
  wire [15:0] total_length;
  wire [EW-1:0] entry;
  wire [2:0] out_nic;
  wire [NICS-1:0] high;

  input_parser parser (
      .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tbytes(s_axis_tbytes),
      .s_axis_tvalid(s_axis_tvalid), .s_axis_tlast(s_axis_tlast), .own_mac(own_mac),
      .is_ipv4(is_ipv4), .forwardable(forwardable), .key(key), .dst(dst), .ttl_expired(ttl_expired),
      .total_length(total_length), .hdr_valid(hdr_valid), .checksum_ok(checksum_ok), .decide(decide)
  );
  route_lookup #(.ENTRIES(NICS)) routes (
      .clk(clk), .dst(dst), .value(route_value), .mask(route_mask), .valid(route_valid), .nic(route_nic),
      .hit(hit), .entry(entry), .out_nic(out_nic)
  );
  ternary_classifier #(.RULES(NICS)) classifier (
      .clk(clk), .key(key), .value(class_value), .mask(class_mask), .enable(class_enable), .high(high)
  );

  // The checks in the order of the golden model.
  wire routed = forwardable && checksum_ok && hit && out_nic != own_id;
  wire fast = routed && !ttl_expired;
  wire drop_checksum = forwardable && !checksum_ok && drop_bad_checksum;
  wire drop_ttl = routed && ttl_expired && !ttl_to_host;
  wire [2:0] dest = fast ? out_nic : own_id;
  wire class_high = is_ipv4 && high[dest[EW-1:0]];

  localparam DW = 3 + 3 + 1 + EW + 16;
  wire [DW-1:0] dec;
  wire dec_valid, dec_ready, dec_full;
  wire [3:0] dec_level;
  sync_fifo #(.W(DW), .AW(3)) decisions (
      .clk(clk), .rst(rst), .wr_en(decide),
      .wr_data({fast, drop_ttl, drop_checksum, dest, class_high, entry, total_length}),
      .full(dec_full), .rd_en(dec_ready), .rd_data(dec), .rd_valid(dec_valid), .level(dec_level)
  );

  wire [69:0] word;
  wire word_valid, word_ready, word_full;
  wire [5:0] word_level;
  sync_fifo #(.W(70), .AW(5)) words (
      .clk(clk), .rst(rst), .wr_en(s_axis_tvalid),
      .wr_data({s_axis_tuser, s_axis_tbytes, s_axis_tlast, s_axis_tdata}),
      .full(word_full), .rd_en(word_ready && word_valid), .rd_data(word), .rd_valid(word_valid), .level(word_level)
  );

  ip_rewrite #(.EW(EW)) rewrite (
      .clk(clk), .rst(rst),
      .s_axis_tdata(word[63:0]), .s_axis_tbytes(word[67:65]), .s_axis_tvalid(word_valid),
      .s_axis_tlast(word[64]), .s_axis_tuser(word[69:68]), .s_axis_tready(word_ready),
      .dec_valid(dec_valid), .dec_ready(dec_ready), .dec_fast(dec[DW-1]), .dec_drop_ttl(dec[DW-2]),
      .dec_drop_checksum(dec[DW-3]), .dec_dest(dec[DW-4-:3]), .dec_high(dec[16+EW]), .dec_route(dec[16+:EW]),
      .dec_total_length(dec[15:0]), .mac_addr(mac_addr), .mac_data(mac_data), .write_source_mac(write_source_mac),
      .m_axis_tdata(m_axis_tdata), .m_axis_tbytes(m_axis_tbytes), .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tlast(m_axis_tlast), .m_axis_tuser(m_axis_tuser), .m_axis_tdest(m_axis_tdest),
      .m_axis_thigh(m_axis_thigh), .events(events)
  );
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// Everything between the MAC's words and the input FIFOs: parser, rules and rewrite, with the words waiting in a small
// buffer until the decision is made. Never stalls the MAC.
`default_nettype none

module input_processing #(
    parameter NICS = 4   // cards that can be addressed
) (
    input  wire            clk,
    input  wire            rst,
    input  wire [63:0]     s_axis_tdata,
    input  wire [7:0]      s_axis_tkeep,
    input  wire            s_axis_tvalid,
    input  wire            s_axis_tlast,
    input  wire [1:0]      s_axis_tuser,
    // Configuration.
    input  wire [2:0]      own_id,
    input  wire [47:0]     own_mac,
    input  wire [NICS-1:0] up,          // cards that can be reached
    input  wire            wr_rule,     // see rule_table
    input  wire            wr_commit,
    input  wire            wr_policy,
    input  wire [6:0]      wr_word,
    input  wire [63:0]     wr_data,
    input  wire            rd_rule,
    input  wire [6:0]      rd_word,
    output wire            rd_done,
    output wire [63:0]     rd_data,
    output wire [2:0]      rule_status,
    output wire [2:0]      policy,
    // To the input FIFOs; the own number is the slow path.
    output wire [63:0]     m_axis_tdata,
    output wire [7:0]      m_axis_tkeep,
    output wire            m_axis_tvalid,
    output wire            m_axis_tlast,
    output wire            m_axis_tuser,
    output wire [2:0]      m_axis_tdest,
    output wire            m_axis_thigh,
    output wire [9:0]      events,
    output reg             overflow     // pulse: a buffer that should have had room had none
);
  wire is_ipv4, forwardable, ttl_expired, hdr_valid, checksum_ok;
  wire [79:0] key;
  wire [15:0] total_length;
  input_parser parser (
      .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep), .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tlast(s_axis_tlast), .own_mac(own_mac), .is_ipv4(is_ipv4), .forwardable(forwardable), .key(key),
      .ttl_expired(ttl_expired), .total_length(total_length), .hdr_valid(hdr_valid), .checksum_ok(checksum_ok)
  );

  wire decide, fast, drop_ttl, drop_checksum, no_port, high, mac_busy;
  wire [2:0] dest, policy_now;
  wire [4:0] entry;
  wire [5:0] mac_addr;
  wire [47:0] mac_data;
  rule_table #(.NICS(NICS)) rules (
      .clk(clk), .rst(rst), .start(hdr_valid), .forwardable(forwardable), .is_ipv4(is_ipv4), .ttl_expired(ttl_expired),
      .checksum_ok(checksum_ok), .key(key), .done(decide), .fast(fast), .drop_ttl(drop_ttl),
      .drop_checksum(drop_checksum), .no_port(no_port), .dest(dest), .high(high), .entry(entry), .policy(policy_now),
      .own_id(own_id), .up(up), .mac_addr(mac_addr), .mac_busy(mac_busy), .mac_data(mac_data), .wr_rule(wr_rule),
      .wr_commit(wr_commit), .wr_policy(wr_policy), .wr_word(wr_word), .wr_data(wr_data), .rd_rule(rd_rule),
      .rd_word(rd_word), .rd_done(rd_done), .rd_data(rd_data), .status(rule_status), .policy_written(policy)
  );

  localparam DW = 30;
  wire [DW-1:0] dec;
  wire dec_valid, dec_ready, dec_full;
  wire [3:0] dec_level;
  sync_fifo #(.W(DW), .AW(3)) decisions (
      .clk(clk), .rst(rst), .wr_en(decide),
      .wr_data({fast, no_port, drop_ttl, drop_checksum, policy_now[0], high, entry, dest, total_length}),
      .full(dec_full), .rd_en(dec_ready), .rd_data(dec), .rd_valid(dec_valid), .level(dec_level)
  );

  wire [74:0] word;
  wire word_valid, word_ready, word_full;
  wire [5:0] word_level;
  sync_fifo #(.W(75), .AW(5)) words (
      .clk(clk), .rst(rst), .wr_en(s_axis_tvalid),
      .wr_data({s_axis_tuser, s_axis_tkeep, s_axis_tlast, s_axis_tdata}),
      .full(word_full), .rd_en(word_ready && word_valid), .rd_data(word), .rd_valid(word_valid), .level(word_level)
  );
  wire unused = |{dec_level, word_level, policy_now[2:1]};
  always_ff @(posedge clk) overflow <= !rst && ((decide && dec_full) || (s_axis_tvalid && word_full));

  ip_rewrite rewrite (
      .clk(clk), .rst(rst), .s_axis_tdata(word[63:0]), .s_axis_tkeep(word[72:65]), .s_axis_tvalid(word_valid),
      .s_axis_tlast(word[64]), .s_axis_tuser(word[74:73]), .s_axis_tready(word_ready), .dec_valid(dec_valid),
      .dec_ready(dec_ready), .dec_fast(dec[29]), .dec_no_port(dec[28]), .dec_drop_ttl(dec[27]),
      .dec_drop_checksum(dec[26]), .dec_write_source(dec[25]), .dec_high(dec[24]), .dec_entry(dec[23:19]),
      .dec_dest(dec[18:16]), .dec_total_length(dec[15:0]), .mac_addr(mac_addr), .mac_busy(mac_busy),
      .mac_data(mac_data), .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(m_axis_tkeep), .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tlast(m_axis_tlast), .m_axis_tuser(m_axis_tuser), .m_axis_tdest(m_axis_tdest),
      .m_axis_thigh(m_axis_thigh), .events(events)
  );
endmodule

`default_nettype wire

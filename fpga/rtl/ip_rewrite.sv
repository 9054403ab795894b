// SPDX-License-Identifier: MIT OR Apache-2.0
// Takes frames from the word buffer as decisions come and passes them on: fast-path frames with new addresses,
// TTL less one and the checksum updated (RFC 1624 equation 3); slow-path frames untouched; dropped ones not at all.
// Whether a frame is to be thrown away because it is bad or truncated is known with its last word (m_axis_tuser).
// Between two frames there are at least four idle cycles.
`default_nettype none

module ip_rewrite (
    input  wire        clk,
    input  wire        rst,
    // Word buffer, first word falls through.
    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tvalid,
    input  wire        s_axis_tlast,
    input  wire [1:0]  s_axis_tuser,     // what is wrong with the frame, with the last word (gmii_mac_rx)
    output wire        s_axis_tready,
    // Decisions, first word falls through.
    input  wire        dec_valid,
    output reg         dec_ready,
    input  wire        dec_fast,
    input  wire        dec_no_port,
    input  wire        dec_drop_ttl,
    input  wire        dec_drop_checksum,
    input  wire        dec_write_source,
    input  wire [2:0]  dec_dest,
    input  wire        dec_high,
    input  wire [4:0]  dec_entry,        // {bank, route}
    input  wire [15:0] dec_total_length,
    // Next-hop and source addresses, in a memory with a cycle of latency.
    output wire [5:0]  mac_addr,
    output wire        mac_busy,
    input  wire [47:0] mac_data,
    // To the input FIFOs.
    output reg  [63:0] m_axis_tdata,
    output reg  [7:0]  m_axis_tkeep,
    output reg         m_axis_tvalid,
    output reg         m_axis_tlast,
    output reg         m_axis_tuser,     // with tlast: throw the frame away
    output reg  [2:0]  m_axis_tdest,
    output reg         m_axis_thigh,
    // Pulses: the counters from rx_frames to rx_cut, then those from drop_ttl to slow_no_port.
    output reg  [9:0]  events
);
  localparam [2:0] IDLE = 3'd0, MAC0 = 3'd1, MAC1 = 3'd2, MAC2 = 3'd3, STREAM = 3'd4;

  reg [2:0] state;
  reg [2:0] index;
  reg [10:0] bytes;      // frame bytes before this word
  reg [47:0] next_hop, source;
  reg [16:0] needed;     // frame bytes that the IPv4 total length asks for

  assign mac_addr = {dec_entry, state == MAC0};
  assign mac_busy = state == MAC0 || state == MAC1;
  wire [2:0] last_byte;
  keep_count count (.tkeep(s_axis_tkeep), .last(last_byte));
  assign s_axis_tready = state == STREAM;
  wire beat = state == STREAM && s_axis_tvalid;
  wire [11:0] frame_bytes = {1'b0, bytes} + {9'd0, last_byte} + 12'd1;
  wire truncated = dec_fast && needed > {5'd0, frame_bytes};
  wire drop_early = dec_drop_ttl || dec_drop_checksum;
  wire bad = s_axis_tuser != 0;

  // RFC 1624: ~(~HC + ~m + m') where the TTL's word m falls by 0x100.
  wire [15:0] old_checksum = {s_axis_tdata[7:0], s_axis_tdata[15:8]};
  wire [16:0] sum = {1'b0, ~old_checksum} + 17'h0feff;
  wire [15:0] new_checksum = ~(sum[15:0] + {15'd0, sum[16]});

  always_ff @(posedge clk) begin
    m_axis_tvalid <= beat && !drop_early;
    m_axis_tlast <= s_axis_tlast;
    m_axis_tkeep <= s_axis_tkeep;
    m_axis_tuser <= bad || truncated;
    m_axis_tdata <= s_axis_tdata;
    m_axis_tdest <= dec_dest;
    m_axis_thigh <= dec_high;
    if (dec_fast)
      case (index)
        3'd0: begin
          m_axis_tdata[47:0] <= next_hop;
          if (dec_write_source) m_axis_tdata[63:48] <= source[15:0];
        end
        3'd1: if (dec_write_source) m_axis_tdata[31:0] <= source[47:16];
        3'd2: m_axis_tdata[55:48] <= s_axis_tdata[55:48] - 1'b1;
        3'd3: m_axis_tdata[15:0] <= {new_checksum[7:0], new_checksum[15:8]};
        default: ;
      endcase

    events <= 0;
    dec_ready <= 1'b0;
    case (state)
      IDLE: begin
        index <= 0;
        bytes <= 0;
        needed <= {1'b0, dec_total_length} + 17'd14;
        if (dec_valid && !dec_ready) state <= MAC0;
      end
      MAC0: state <= MAC1;            // the source address is being read
      MAC1: begin
        source <= mac_data;
        state <= MAC2;
      end
      MAC2: begin
        next_hop <= mac_data;
        state <= STREAM;
      end
      default:
        if (s_axis_tvalid) begin
          bytes <= bytes + 11'd8;
          if (index != 3'd7) index <= index + 1'b1;
          if (s_axis_tlast) begin
            state <= IDLE;
            dec_ready <= 1'b1;
            events[0] <= 1'b1;
            if (bad) events[3:1] <= 3'd1 << (s_axis_tuser - 1'b1);
            else begin
              events[4] <= dec_drop_ttl;
              events[5] <= dec_drop_checksum;
              events[6] <= !drop_early && truncated;
              events[7] <= !drop_early && !truncated && dec_fast;
              events[8] <= !drop_early && !dec_fast;
              events[9] <= !drop_early && !dec_fast && dec_no_port;
            end
          end
        end
    endcase
    if (rst) begin
      state <= IDLE;
      m_axis_tvalid <= 1'b0;
      dec_ready <= 1'b0;
      events <= 0;
    end
  end
endmodule

`default_nettype wire

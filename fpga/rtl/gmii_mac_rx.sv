// SPDX-License-Identifier: MIT OR Apache-2.0
// Gigabit MAC, receive side: GMII in, bytes of the frame without preamble and check sequence out. There is no
// back-pressure. With the last byte comes what is wrong with the frame: tuser 0 nothing, 1 check sequence or line
// error, 2 shorter than 64 or longer than 1518 bytes with check sequence (1522 with a VLAN tag, IEEE 802.3 clause
// 3.2.7). Of a frame that is too long, what exceeds is not passed on.
//
// What follows counts on frames not to begin closer than 72 byte times, which is what preamble and shortest frame
// take. Of those that do, and of carriers without start-of-frame delimiter, a pulse tells; what comes within 32 byte
// times is told once.
`default_nettype none

module gmii_mac_rx (
    input  wire       clk,
    input  wire       rst,
    input  wire [7:0] gmii_rxd,
    input  wire       gmii_rx_dv,
    input  wire       gmii_rx_er,
    output reg  [7:0] m_axis_tdata,
    output reg        m_axis_tvalid,
    output reg        m_axis_tlast,
    output reg  [1:0] m_axis_tuser,
    output reg        no_sfd,     // pulse
    output reg        crowded     // pulse
);
  localparam [1:0] IDLE = 2'd0, DATA = 2'd1, SKIP = 2'd2;
  localparam [1:0] GOOD = 2'd0, BAD_FCS = 2'd1, BAD_LENGTH = 2'd2;
  localparam [31:0] RESIDUE = 32'hdebb20e3;
  localparam [6:0] START_TO_START = 7'd72;

  reg [1:0] state;
  reg [39:0] held;       // the last five bytes: a data byte and what may be the check sequence
  reg [10:0] count;      // bytes since the start-of-frame delimiter, up to 1523
  // Of the count, a cycle before they are needed: five bytes are here; as many as a frame must have, may have, or more.
  reg have_byte, long_enough, at_longest, too_long;
  reg [31:0] crc;
  reg error, carrier, tag_begun, vlan;
  reg [6:0] since;       // byte times since the last frame began
  reg [4:0] pace;        // of the pulses
  reg no_sfd_seen, crowded_seen;
  wire [31:0] crc_next;
  crc32_byte crc_step (.crc(crc), .data(gmii_rxd), .next(crc_next));

  wire [10:0] longest = vlan ? 11'd1522 : 11'd1518;
  wire tells = pace == 5'd31;

  always_ff @(posedge clk) begin
    m_axis_tvalid <= 1'b0;
    m_axis_tlast <= 1'b0;
    m_axis_tdata <= held[39:32];
    m_axis_tuser <= (!long_enough || too_long) ? BAD_LENGTH : (error || crc != RESIDUE) ? BAD_FCS : GOOD;
    if (since != START_TO_START) since <= since + 1'b1;
    pace <= pace + 1'b1;
    no_sfd <= tells && no_sfd_seen;
    crowded <= tells && crowded_seen;
    if (tells) begin
      no_sfd_seen <= 1'b0;
      crowded_seen <= 1'b0;
    end
    case (state)
      IDLE: begin
        count <= 0;
        have_byte <= 1'b0;
        long_enough <= 1'b0;
        at_longest <= 1'b0;
        too_long <= 1'b0;
        crc <= 32'hffffffff;
        error <= 1'b0;
        vlan <= 1'b0;
        carrier <= gmii_rx_dv;
        if (gmii_rx_dv) begin
          if (gmii_rxd == 8'hd5 && since == START_TO_START) begin
            state <= DATA;
            since <= 0;
            carrier <= 1'b0;
          end else if (gmii_rxd != 8'h55) begin
            state <= SKIP;
            if (gmii_rxd == 8'hd5) crowded_seen <= 1'b1;
            else no_sfd_seen <= 1'b1;
            carrier <= 1'b0;
          end
        end else if (carrier) no_sfd_seen <= 1'b1;
      end
      DATA:
        if (gmii_rx_dv) begin
          if (!too_long) begin
            held <= {held[31:0], gmii_rxd};
            count <= count + 1'b1;
            if (count == 11'd4) have_byte <= 1'b1;
            if (count == 11'd63) long_enough <= 1'b1;
            at_longest <= count == longest - 1'b1;
            too_long <= at_longest;
            m_axis_tvalid <= have_byte && !at_longest;
          end
          tag_begun <= count == 11'd12 && (gmii_rxd == 8'h81 || gmii_rxd == 8'h88);
          if (count == 11'd13 && tag_begun && gmii_rxd == (held[3] ? 8'ha8 : 8'h00)) vlan <= 1'b1;
          crc <= crc_next;
          error <= error | gmii_rx_er;
        end else begin
          m_axis_tvalid <= 1'b1;
          m_axis_tlast <= 1'b1;
          state <= IDLE;
        end
      default: if (!gmii_rx_dv) state <= IDLE;
    endcase
    if (rst) begin
      // Not in the middle of a frame.
      state <= SKIP;
      m_axis_tvalid <= 1'b0;
      since <= START_TO_START;
      pace <= 0;
      no_sfd <= 1'b0;
      crowded <= 1'b0;
      no_sfd_seen <= 1'b0;
      crowded_seen <= 1'b0;
      carrier <= 1'b0;
    end
  end
endmodule

`default_nettype wire

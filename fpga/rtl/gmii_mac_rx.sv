// Gigabit MAC, receive side: GMII in, bytes of the frame without preamble and check sequence out. There is no
// back-pressure. With the last byte comes what is wrong with the frame: tuser[0] check sequence or line error,
// tuser[1] shorter than 64 or longer than 1518 bytes with check sequence. Of a frame that is too long, what
// exceeds is not passed on, so that a frame is never more than 1514 bytes here.
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
    output reg  [1:0] m_axis_tuser
);
  localparam [1:0] IDLE = 2'd0, DATA = 2'd1, SKIP = 2'd2;
  localparam [31:0] RESIDUE = 32'hdebb20e3;

  reg [1:0] state;
  reg [39:0] held;       // the last five bytes: a data byte and what may be the check sequence
  reg [10:0] count;      // bytes since the start-of-frame delimiter, up to 1519
  reg [31:0] crc;
  reg error;
  wire [31:0] crc_next;
  crc32_byte crc_step (.crc(crc), .data(gmii_rxd), .next(crc_next));

  wire have_byte = count >= 11'd5;
  wire too_long = count > 11'd1518;

  always @(posedge clk) begin
    m_axis_tvalid <= 1'b0;
    m_axis_tlast <= 1'b0;
    m_axis_tdata <= held[39:32];
    m_axis_tuser <= {count < 11'd64 || too_long, error || crc != RESIDUE};
    case (state)
      IDLE: begin
        count <= 0;
        crc <= 32'hffffffff;
        error <= 1'b0;
        if (gmii_rx_dv) begin
          if (gmii_rxd == 8'hd5) state <= DATA;
          else if (gmii_rxd != 8'h55) state <= SKIP;
        end
      end
      DATA:
        if (gmii_rx_dv) begin
          if (!too_long) begin
            held <= {held[31:0], gmii_rxd};
            count <= count + 1'b1;
            m_axis_tvalid <= have_byte && count != 11'd1518;
          end
          crc <= crc_next;
          error <= error | gmii_rx_er;
        end else begin
          m_axis_tvalid <= have_byte;
          m_axis_tlast <= have_byte;
          state <= IDLE;
        end
      default: if (!gmii_rx_dv) state <= IDLE;
    endcase
    if (rst) begin
      state <= gmii_rx_dv ? SKIP : IDLE;
      m_axis_tvalid <= 1'b0;
    end
  end
endmodule

`default_nettype wire

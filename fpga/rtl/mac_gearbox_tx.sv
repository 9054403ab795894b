// One word to eight bytes, without a pause between words as long as the next one is there.
`default_nettype none

module mac_gearbox_tx (
    input  wire        clk,
    input  wire        rst,
    input  wire [63:0] s_axis_tdata,
    input  wire [2:0]  s_axis_tbytes,  // valid bytes less one
    input  wire        s_axis_tvalid,
    input  wire        s_axis_tlast,
    output wire        s_axis_tready,
    output wire [7:0]  m_axis_tdata,
    output wire        m_axis_tvalid,
    output wire        m_axis_tlast,
    input  wire        m_axis_tready
);
  reg [63:0] word;
  reg [2:0] left;    // bytes after the current one
  reg valid, last, final_byte;
  wire empty_next = !valid || (m_axis_tready && final_byte);

  assign s_axis_tready = empty_next;
  assign m_axis_tdata = word[7:0];
  assign m_axis_tvalid = valid;
  assign m_axis_tlast = last && final_byte;

  always @(posedge clk) begin
    if (empty_next) begin
      valid <= s_axis_tvalid;
      word <= s_axis_tdata;
      left <= s_axis_tbytes;
      last <= s_axis_tlast;
      final_byte <= s_axis_tbytes == 0;
    end else if (m_axis_tready) begin
      word <= word >> 8;
      left <= left - 1'b1;
      final_byte <= left == 3'd1;
    end
    if (rst) valid <= 1'b0;
  end
endmodule

`default_nettype wire

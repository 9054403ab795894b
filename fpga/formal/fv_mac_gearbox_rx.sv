// SPDX-License-Identifier: MIT OR Apache-2.0
// Bytes at will: each word has the bytes since the one before, lowest first, eight of them or those up to the frame's last.
module fv_mac_gearbox_rx (
    input wire       clk,
    input wire [7:0] tdata,
    input wire       tvalid,
    input wire       tlast,
    input wire [1:0] tuser
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  wire [63:0] word;
  wire [7:0] keep;
  wire valid, last;
  wire [1:0] user;
  mac_gearbox_rx dut (
      .clk(clk), .rst(rst), .s_axis_tdata(tdata), .s_axis_tvalid(tvalid && !rst), .s_axis_tlast(tlast),
      .s_axis_tuser(tuser), .m_axis_tdata(word), .m_axis_tkeep(keep), .m_axis_tvalid(valid), .m_axis_tlast(last),
      .m_axis_tuser(user)
  );
  // What has come since the last word, and the word that is due.
  reg [3:0] count = 0;
  reg [63:0] bytes, due_word;
  reg [7:0] due_keep;
  reg [1:0] due_user;
  reg due = 1'b0, due_last;
  wire [3:0] more = count + 1'b1;
  wire [63:0] with_it = (bytes & ~(64'hff << (8 * count))) | ({56'd0, tdata} << (8 * count));
  wire [63:0] mask = {{8{due_keep[7]}}, {8{due_keep[6]}}, {8{due_keep[5]}}, {8{due_keep[4]}}, {8{due_keep[3]}},
                      {8{due_keep[2]}}, {8{due_keep[1]}}, {8{due_keep[0]}}};
  always @(posedge clk) if (!rst) begin
    due <= 1'b0;
    if (tvalid) begin
      bytes <= with_it;
      count <= (tlast || more == 8) ? 4'd0 : more;
      due <= tlast || more == 8;
      due_word <= with_it;
      due_keep <= (8'd1 << more) - 1'b1;
      due_last <= tlast;
      due_user <= tuser;
    end
    assert (valid == due);
    if (due) assert (keep == due_keep && last == due_last && user == due_user && ((word ^ due_word) & mask) == 0);
  end
endmodule

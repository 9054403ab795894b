// SPDX-License-Identifier: MIT OR Apache-2.0
// Three kinds of events, each at most once in sixteen cycles, amounts that are added to a counter without events, and
// reads, at will: what is read of any
// counter is what has happened, but for what is still on its way.
module fv_counter_bank (
    input wire       clk,
    input wire [3:0] happens,
    input wire       adds,
    input wire [7:0] amount,
    input wire       reads,
    input wire [1:0] read_of
);
  reg [1:0] resets = 2'd2;
  wire rst = resets != 0;
  always @(posedge clk) if (rst) resets <= resets - 1'b1;
  reg [3:0] rested[0:3];
  reg adding = 1'b0, reading = 1'b0;
  reg [1:0] to, of;
  reg [7:0] much;
  wire add_ready, rd_done;
  wire [63:0] rd_data;
  wire [3:0] events;
  genvar g;
  generate
    for (g = 0; g < 4; g = g + 1) begin : kinds
      assign events[g] = g != 3 && happens[g] && rested[g] == 15 && !rst;
    end
  endgenerate
  counter_bank #(.EVENTS(4)) dut (
      .clk(clk), .rst(rst), .events(events), .add_valid(adding), .add_ready(add_ready), .add_addr(to),
      .add_amount(much), .rd_valid(reading), .rd_addr(of), .rd_done(rd_done), .rd_data(rd_data)
  );
  (* hierconn *) wire [1:0] \dut.ram.chosen ;
  wire [1:0] who = \dut.ram.chosen ;
  (* hierconn *) wire [63:0] \dut.ram.begins ;
  wire [63:0] read_more = rd_data - \dut.ram.begins ;
  reg [63:0] total = 0, settled = 0;
  reg [4:0] quiet = 0;   // cycles since something happened to this counter
  integer i;
  always @(posedge clk) if (!rst) begin
    for (i = 0; i < 4; i = i + 1)
      if (events[i]) rested[i] <= 0;
      else if (rested[i] != 15) rested[i] <= rested[i] + 1'b1;
    if (!adding && adds) begin
      adding <= 1'b1;
      to <= 2'd3;
      much <= amount;
    end else if (adding && add_ready) adding <= 1'b0;
    if (!reading && reads) begin
      reading <= 1'b1;
      of <= read_of;
    end else if (reading && rd_done) reading <= 1'b0;
    total <= total + {63'd0, events[who]} + ((adding && add_ready && to == who) ? {56'd0, much} : 64'd0);
    quiet <= (events[who] || (adding && add_ready && to == who)) ? 5'd0 : (quiet == 31) ? 5'd31 : quiet + 1'b1;
    if (rd_done && reading && of == who) begin
      assert (read_more <= total);
      if (quiet >= 16) assert (read_more == total);
    end
  end else for (i = 0; i < 4; i = i + 1) rested[i] <= 15;
endmodule

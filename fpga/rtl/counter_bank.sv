// SPDX-License-Identifier: MIT OR Apache-2.0
// Counters of 64 bits in one memory. An event sets a flag, and the flags are worked off one a cycle, lowest first; events
// of one kind are further apart than the other kinds are many. What comes in numbers is added at once. A reset leaves
// the counters.
`default_nettype none

module counter_bank #(
    parameter EVENTS = 40,
    parameter AW = $clog2(EVENTS)
) (
    input  wire              clk,
    input  wire              rst,
    input  wire [EVENTS-1:0] events,
    input  wire              add_valid,  // held until add_ready
    output wire              add_ready,
    input  wire [AW-1:0]     add_addr,
    input  wire [7:0]        add_amount,
    input  wire              rd_valid,   // held until rd_done
    input  wire [AW-1:0]     rd_addr,
    output wire              rd_done,
    output wire [63:0]       rd_data     // with rd_done
);
  // Chosen; read; added; written.
  reg [EVENTS-1:0] flags;
  reg [2:0] valid;
  reg [1:0] reading;
  reg [AW-1:0] which[0:2];
  reg [7:0] amount[0:1];
  reg [63:0] sum;
  wire [EVENTS-1:0] first = flags & (~flags + 1'b1);
  reg [AW-1:0] first_index;
  integer i;
  always_comb begin
    first_index = 0;
    for (i = 0; i < EVENTS; i = i + 1) if (first[i]) first_index = first_index | i[AW-1:0];
  end
  wire reads = rd_valid && reading == 0;
  // Not two at a time, because they may be for one counter.
  assign add_ready = add_valid && !reads && valid == 0;
  // Nor one whose sum is still on its way to the memory.
  wire [2:0] same = {which[2] == first_index, which[1] == first_index, which[0] == first_index};
  wire counts = !reads && !add_ready && flags != 0 && (same & valid) == 0;
  assign rd_done = reading[1];

  ram_1r1w #(.W(64), .DEPTH(1 << AW), .ZERO(1)) ram (
      .clk(clk), .wr_en(valid[2] && !rst), .wr_addr(which[2]), .wr_data(sum), .rd_addr(which[0]), .rd_data(rd_data)
  );

  always_ff @(posedge clk) begin
    flags <= (flags & ~(counts ? first : {EVENTS{1'b0}})) | events;
    valid <= {valid[1:0], counts || add_ready};
    reading <= {reading[0], reads};
    which[0] <= reads ? rd_addr : add_ready ? add_addr : first_index;
    which[1] <= which[0];
    which[2] <= which[1];
    amount[0] <= add_ready ? add_amount : 8'd1;
    amount[1] <= amount[0];
    sum <= rd_data + {56'd0, amount[1]};
    if (rst) begin
      flags <= 0;
      valid <= 0;
      reading <= 0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk) if (!rst) assert ((events & flags & ~(counts ? first : {EVENTS{1'b0}})) == 0);
`endif
endmodule

`default_nettype wire

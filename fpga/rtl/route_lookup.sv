// Ternary route table: destination & mask == value. The loader has checked that routes are disjoint; should two
// match all the same, the lowest entry wins. The result is registered twice and follows the key by two cycles.
`default_nettype none

module route_lookup #(
    parameter ENTRIES = 4,
    parameter EW = $clog2(ENTRIES)
) (
    input  wire                  clk,
    input  wire [31:0]           dst,
    input  wire [32*ENTRIES-1:0] value,
    input  wire [32*ENTRIES-1:0] mask,
    input  wire [ENTRIES-1:0]    valid,
    input  wire [3*ENTRIES-1:0]  nic,
    output reg                   hit,
    output reg  [EW-1:0]         entry,
    output reg  [2:0]            out_nic
);
  reg [ENTRIES-1:0] match;
  wire [ENTRIES-1:0] first = match & (~match + 1'b1);
  reg [EW-1:0] entry_next;
  reg [2:0] nic_next;
  integer i, j;
  always @* begin
    entry_next = 0;
    nic_next = 0;
    for (i = 0; i < ENTRIES; i = i + 1)
      if (first[i]) begin
        entry_next = entry_next | i[EW-1:0];
        nic_next = nic_next | nic[3*i+:3];
      end
  end
  always @(posedge clk) begin
    for (j = 0; j < ENTRIES; j = j + 1) match[j] <= valid[j] && ((dst ^ value[32*j+:32]) & mask[32*j+:32]) == 0;
    hit <= match != 0;
    entry <= entry_next;
    out_nic <= nic_next;
  end
endmodule

`default_nettype wire

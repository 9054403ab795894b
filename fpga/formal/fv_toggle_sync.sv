// SPDX-License-Identifier: MIT OR Apache-2.0
// Both clocks are free, and pulses come when four edges of the other clock have passed: each is one event, within four edges.
module fv_toggle_sync (
    input wire from_clk,
    input wire to_clk,
    input wire wish
);
  (* gclk *) wire instant;
  reg [1:0] begun = 0;
  always @(posedge instant) if (begun != 2) begun <= begun + 1'b1;
  wire arst = begun != 2;
  wire from_rst, to_rst, event_o;
  reset_sync from_reset (.clk(from_clk), .arst(arst), .rst(from_rst));
  reset_sync to_reset (.clk(to_clk), .arst(arst), .rst(to_rst));
  reg [3:0] pulses, pulses_then, events;
  reg [2:0] edges;   // since the last pulse
  wire pulse = wish && !from_rst && edges == 4 && pulses == pulses_then;
  toggle_sync dut (
      .from_clk(from_clk), .from_rst(from_rst), .pulse(pulse), .to_clk(to_clk), .to_rst(to_rst), .event_o(event_o)
  );
  always @(posedge from_clk or posedge from_rst)
    if (from_rst) pulses <= 0;
    else if (pulse) pulses <= pulses + 1'b1;
  always @(posedge to_clk or posedge to_rst)
    if (to_rst) begin
      edges <= 4;
      events <= 0;
      pulses_then <= 0;
    end else begin
      pulses_then <= pulses;
      edges <= (pulses != pulses_then) ? 3'd0 : (edges == 4) ? 3'd4 : edges + 1'b1;
      if (event_o) events <= events + 1'b1;
    end
  always @(posedge instant)
    if (!from_rst && !to_rst) begin
      assert (pulses - events <= 1);
      if (edges == 4 && pulses == pulses_then) assert (pulses == events);
    end
`ifdef REACH
  always @(posedge instant) assert (!(events == 2));
`endif
endmodule

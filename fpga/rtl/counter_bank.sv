// Event counters in one memory: an event sets a flag, and the flags are worked off one at a time, lowest first, in
// three cycles each. Events of one kind are at least some tens of cycles apart, so none is lost.
`default_nettype none

module counter_bank #(
    parameter EVENTS = 24,
    parameter AW = $clog2(EVENTS)
) (
    input  wire              clk,
    input  wire              rst,
    input  wire [EVENTS-1:0] events,
    input  wire              rd_valid,   // held until rd_done
    input  wire [AW-1:0]     rd_addr,
    output reg               rd_done,
    output wire [31:0]       rd_data     // with rd_done
);
  localparam [1:0] IDLE = 2'd0, FETCH = 2'd1, STORE = 2'd2, ANSWER = 2'd3;
  reg [1:0] state;
  reg [EVENTS-1:0] flags;
  reg [AW-1:0] which;
  wire [EVENTS-1:0] first = flags & (~flags + 1'b1);
  reg [AW-1:0] first_index;
  integer i;
  always @* begin
    first_index = 0;
    for (i = 0; i < EVENTS; i = i + 1) if (first[i]) first_index = first_index | i[AW-1:0];
  end

  ram_1r1w #(.W(32), .DEPTH(1 << AW), .ZERO(1)) ram (
      .clk(clk), .wr_en(state == STORE && !rst), .wr_addr(which), .wr_data(rd_data + 32'd1), .rd_addr(which), .rd_data(rd_data)
  );

  always @(posedge clk) begin
    rd_done <= 1'b0;
    flags <= flags | events;
    case (state)
      IDLE:
        if (rd_valid && !rd_done) begin
          which <= rd_addr;
          state <= ANSWER;
        end else if (flags != 0) begin
          which <= first_index;
          flags <= (flags & ~first) | events;
          state <= FETCH;
        end
      FETCH: state <= STORE;
      STORE: state <= IDLE;
      default: begin
        rd_done <= 1'b1;
        state <= IDLE;
      end
    endcase
    if (rst) begin
      flags <= 0;
      state <= IDLE;
      rd_done <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk) if (!rst) assert ((events & flags & ~(state == IDLE ? first : {EVENTS{1'b0}})) == 0);
`endif
endmodule

`default_nettype wire

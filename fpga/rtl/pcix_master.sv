// Bus master: address, attribute and response phase, then a word a cycle; no waiting in between. A target that
// disconnects does so at a 128-byte boundary, and the rest is asked for again as a new sequence. A read ends with the
// split response; its data come later as somebody else's write (a split completion), except for the immediate read of
// one register.
`default_nettype none

module pcix_master (
    input  wire        clk,
    input  wire        rst,
    input  wire [3:0]  id,            // goes into the attribute phase, so that completions find the way back
    input  wire        start,
    input  wire [3:0]  cmd,
    input  wire [31:0] addr,
    input  wire [9:0]  words,
    input  wire [63:0] data,          // first word falls through
    output wire        pop,
    output reg         done,
    output reg         aborted,       // with done: nobody answered
    output reg         disconnected,  // pulse
    output reg  [63:0] read_data,     // of an immediate read, with done
    // Bus.
    output reg         req,
    input  wire        gnt,
    output reg         frame_o,
    output reg         irdy_o,
    output reg  [3:0]  cmd_o,
    output reg  [63:0] ad_o,
    input  wire        devsel_i,
    input  wire        trdy_i,
    input  wire        disconnect_i,
    input  wire [63:0] ad_i
);
  localparam [2:0] IDLE = 3'd0, WAIT = 3'd1, ATTR = 3'd2, RESP = 3'd3, DATA = 3'd4, READ = 3'd5;
  reg [2:0] state;
  reg [31:0] cur_addr;
  reg [9:0] left;      // words not yet on the bus
  reg [3:0] command;
  reg [2:0] patience;
  wire writes = command == nic_pkg::CMD_WRITE || command == nic_pkg::CMD_SPLIT;
  // The word on the bus is the last before a boundary, and the target wants to stop there.
  wire boundary = disconnect_i && cur_addr[6:3] == 4'd15;
  wire finished = state == DATA && (left == 0 || boundary);
  assign pop = (state == RESP && devsel_i && writes) || (state == DATA && left != 0 && !boundary);

  always @(posedge clk) begin
    done <= 1'b0;
    aborted <= 1'b0;
    disconnected <= 1'b0;
    case (state)
      IDLE:
        if (start) begin
          cur_addr <= addr;
          left <= words;
          command <= cmd;
          req <= 1'b1;
          state <= WAIT;
        end
      WAIT:
        if (gnt) begin
          req <= 1'b0;
          frame_o <= 1'b1;
          cmd_o <= command;
          ad_o <= {32'd0, cur_addr};
          state <= ATTR;
        end
      ATTR: begin
        ad_o <= {44'd0, id, 3'd0, left, 3'd0};
        patience <= 0;
        state <= RESP;
      end
      RESP: begin
        ad_o <= 0;
        patience <= patience + 1'b1;
        if (devsel_i) begin
          if (writes) begin
            irdy_o <= 1'b1;
            ad_o <= data;
            left <= left - 1'b1;
            state <= DATA;
          end else if (command == nic_pkg::CMD_READ_DWORD) state <= READ;
          else begin
            frame_o <= 1'b0;
            done <= 1'b1;
            state <= IDLE;
          end
        end else if (patience == 3'd7) begin
          frame_o <= 1'b0;
          done <= 1'b1;
          aborted <= 1'b1;
          state <= IDLE;
        end
      end
      DATA: begin
        cur_addr <= cur_addr + 32'd8;
        if (finished) begin
          frame_o <= 1'b0;
          irdy_o <= 1'b0;
          ad_o <= 0;
          if (left == 0) begin
            done <= 1'b1;
            state <= IDLE;
          end else begin
            disconnected <= 1'b1;
            req <= 1'b1;
            state <= WAIT;
          end
        end else begin
          ad_o <= data;
          left <= left - 1'b1;
        end
      end
      default:
        if (trdy_i) begin
          read_data <= ad_i;
          frame_o <= 1'b0;
          done <= 1'b1;
          state <= IDLE;
        end
    endcase
    if (rst) begin
      state <= IDLE;
      req <= 1'b0;
      frame_o <= 1'b0;
      irdy_o <= 1'b0;
      ad_o <= 0;
      cmd_o <= 0;
      done <= 1'b0;
    end
  end
endmodule

`default_nettype wire

// Output side of a burst: checks the header, counts the words, passes packets to the fast output FIFO and the
// trailing REQ to the response scheduler. One burst is outstanding at most, so one state machine is enough.
`default_nettype none

module burst_receiver (
    input  wire        clk,
    input  wire        rst,
    input  wire        wr_valid,      // a word in the burst area
    input  wire [2:0]  wr_source,
    input  wire [63:0] wr_data,
    output reg         out_valid,
    output reg  [63:0] out_data,
    output reg         out_last,      // last word of a packet
    output reg         req_valid,
    output reg  [2:0]  req_source,
    output reg  [11:0] req_high,
    output reg  [11:0] req_low,
    output reg         protocol_error // sticky
);
  localparam [1:0] HEADER = 2'd0, PKT = 2'd1, DATA = 2'd2, TAIL = 2'd3;
  reg [1:0] state;
  reg [11:0] left;      // words up to the trailing REQ
  reg [7:0] packet_left;
  wire [3:0] kind = wr_data[63:60];
  wire [7:0] data_words = wr_data[10:3] + {7'd0, wr_data[2:0] != 0};

  always @(posedge clk) begin
    out_valid <= 1'b0;
    out_last <= 1'b0;
    req_valid <= 1'b0;
    out_data <= wr_data;
    if (wr_valid) begin
      case (state)
        HEADER: begin
          left <= wr_data[11:0];
          if (kind != nic_pkg::MSG_BURST) protocol_error <= 1'b1;
          else state <= (wr_data[11:0] == 0) ? TAIL : PKT;
        end
        PKT: begin
          if (kind != nic_pkg::MSG_PKT) protocol_error <= 1'b1;
          out_valid <= 1'b1;
          packet_left <= data_words;
          left <= left - 1'b1;
          state <= DATA;
        end
        DATA: begin
          out_valid <= 1'b1;
          packet_left <= packet_left - 1'b1;
          left <= left - 1'b1;
          if (packet_left == 8'd1) begin
            out_last <= 1'b1;
            state <= (left == 12'd1) ? TAIL : PKT;
          end
        end
        default: begin
          if (kind != nic_pkg::MSG_REQ || wr_data[55:52] != {1'b0, wr_source}) protocol_error <= 1'b1;
          req_valid <= 1'b1;
          req_source <= wr_source;
          req_high <= wr_data[30:19];
          req_low <= wr_data[14:3];
          state <= HEADER;
        end
      endcase
    end
    if (rst) begin
      state <= HEADER;
      out_valid <= 1'b0;
      req_valid <= 1'b0;
      protocol_error <= 1'b0;
    end
  end

`ifdef ASSERTIONS
  always @(posedge clk) if (!rst) assert (!protocol_error);
`endif
endmodule

`default_nettype wire

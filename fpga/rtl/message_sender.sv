// DMA channel iii: REQ and RES as single words to the peers' mailboxes, in turn when both wait.
`default_nettype none

module message_sender #(
    parameter NICS = 4
) (
    input  wire         clk,
    input  wire         rst,
    input  wire [3:0]   own_id,
    input  wire [127:0] peer_base,   // bits 31:16 of each card's BAR
    input  wire         req_valid,
    output wire         req_ready,
    input  wire [2:0]   req_dest,
    input  wire [11:0]  req_high,
    input  wire [11:0]  req_low,
    input  wire         res_valid,
    output wire         res_ready,
    input  wire [2:0]   res_dest,
    input  wire [11:0]  res_high,
    input  wire [11:0]  res_low,
    output reg          dma_valid,
    output wire [31:0]  dma_addr,
    output wire [63:0]  dma_data,
    input  wire         dma_done
);
  reg is_res;
  wire [2:0] dest = is_res ? res_dest : req_dest;
  assign req_ready = dma_done && !is_res;
  assign res_ready = dma_done && is_res;
  assign dma_addr = {peer_base[16*dest+:16], nic_pkg::AREA_MAILBOX | {6'd0, own_id, 2'd0, is_res, 3'd0}};
  assign dma_data = is_res
      ? {nic_pkg::MSG_RES, 4'd0, own_id, 1'b0, dest, 16'd0, 1'b0, res_high, 3'd0, 1'b0, res_low, 3'd0}
      : {nic_pkg::MSG_REQ, 4'd0, own_id, 1'b0, dest, 16'd0, 1'b0, req_high, 3'd0, 1'b0, req_low, 3'd0};

  always @(posedge clk) begin
    if (rst) begin
      dma_valid <= 1'b0;
      is_res <= 1'b0;
    end else if (dma_done) dma_valid <= 1'b0;
    else if (!dma_valid && (req_valid || res_valid)) begin
      dma_valid <= 1'b1;
      is_res <= res_valid && !(is_res && req_valid);
    end
  end
endmodule

`default_nettype wire

// SPDX-License-Identifier: MIT OR Apache-2.0
// DMA channel iii: single words to the peers' mailboxes, one at a time. What the links need goes first; REQ and RES
// take turns when both wait. A message is taken when its turn comes, and how it fared is told when it is over.
`default_nettype none

module message_sender #(
    parameter PEERS = 3,
    parameter PW = $clog2(PEERS),
    parameter EW = $clog2(PEERS + 1)
) (
    input  wire          clk,
    input  wire          rst,
    input  wire [EW-1:0] own_id,
    input  wire [127:0]  peer_base,     // bits 31:16 of each card's BAR
    input  wire          link_valid,
    output wire          link_ready,
    input  wire [3:0]    link_type,
    input  wire [PW-1:0] link_peer,
    input  wire          req_valid,
    output wire          req_ready,
    input  wire [PW-1:0] req_peer,
    input  wire [11:0]   req_high,
    input  wire [11:0]   req_low,
    input  wire          res_valid,
    output wire          res_ready,
    input  wire [PW-1:0] res_peer,
    input  wire [11:0]   res_high,
    input  wire [11:0]   res_low,
    output reg           busy,          // with the message taken last
    output reg  [PW-1:0] peer,
    output reg  [3:0]    kind,
    output wire          sent,          // pulse: it is over
    output wire          failed,        // with it: it did not arrive
    output reg           dma_valid,
    output wire [31:0]   dma_addr,
    output reg  [63:0]   dma_data,
    input  wire          dma_done,
    input  wire          dma_error
);
  localparam [5:0] REQ_AT = 6'h00, RES_AT = 6'h08, LINK_AT = 6'h10;
  reg last_was_res;
  wire take = !busy;
  assign link_ready = take && link_valid;
  assign res_ready = take && res_valid && !link_valid && !(last_was_res && req_valid);
  assign req_ready = take && req_valid && !link_valid && !res_ready;
  assign sent = dma_done;
  assign failed = dma_error;

  wire [PW-1:0] next_peer = link_valid ? link_peer : res_ready ? res_peer : req_peer;
  wire [3:0] next_kind = link_valid ? link_type : res_ready ? nic_pkg::MSG_RES : nic_pkg::MSG_REQ;
  wire [11:0] next_high = link_valid ? 12'd0 : res_ready ? res_high : req_high;
  wire [11:0] next_low = link_valid ? 12'd0 : res_ready ? res_low : req_low;
  // Peers are numbered without a gap, by the difference of the cards' numbers.
  wire [EW-1:0] next_slot = {{(EW - PW){1'b0}}, next_peer} + 1'b1;
  wire [EW-1:0] next_dest = next_slot ^ own_id;
  wire [EW-1:0] slot = {{(EW - PW){1'b0}}, peer} + 1'b1;
  wire [EW-1:0] dest = slot ^ own_id;
  wire [5:0] place = (kind == nic_pkg::MSG_REQ) ? REQ_AT : (kind == nic_pkg::MSG_RES) ? RES_AT : LINK_AT;
  wire [15:0] mail_at = nic_pkg::AREA_MAILBOX | {{(10 - EW){1'b0}}, own_id, place};
  assign dma_addr = {peer_base[16*dest+:16], mail_at};

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= 1'b0;
      dma_valid <= 1'b0;
      last_was_res <= 1'b0;
    end else if (dma_done) begin
      busy <= 1'b0;
      dma_valid <= 1'b0;
    end else if (link_ready || req_ready || res_ready) begin
      busy <= 1'b1;
      dma_valid <= 1'b1;
      if (!link_valid) last_was_res <= res_ready;
      peer <= next_peer;
      kind <= next_kind;
      dma_data <= {next_kind, 4'd0, {(4 - EW){1'b0}}, own_id, {(4 - EW){1'b0}}, next_dest, 17'd0, next_high, 4'd0,
                   next_low, 3'd0};
    end
  end
endmodule

`default_nettype wire

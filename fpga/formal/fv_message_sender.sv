// SPDX-License-Identifier: MIT OR Apache-2.0
// Messages of three kinds that are offered at will and held, and a channel that takes its time. One message is taken at a
// time and told of when it is over; it goes to its peer's mailbox with what was offered; links come first, and neither a
// REQ nor a RES is passed over twice by the other.
module fv_message_sender (
    input wire        clk,
    input wire [1:0]  own,
    input wire        link,
    input wire        req,
    input wire        res,
    input wire        ends,
    input wire        fails
);
  reg rst = 1'b1;
  always @(posedge clk) rst <= 1'b0;
  (* anyconst *) reg [1:0] own_id;
  (* anyconst *) reg [1:0] link_peer, req_peer, res_peer;
  always @* assume (link_peer != 3 && req_peer != 3 && res_peer != 3);
  // Held until taken.
  reg has_link = 1'b0, has_req = 1'b0, has_res = 1'b0;
  wire link_ready, req_ready, res_ready, busy, sent, failed, dma_valid;
  wire [1:0] peer;
  wire [3:0] kind;
  wire [31:0] dma_addr;
  wire [63:0] dma_data;
  wire dma_done = dma_valid && ends;
  message_sender #(.PEERS(3)) dut (
      .clk(clk), .rst(rst), .own_id(own_id), .peer_base({64'd0, 16'd3, 16'd2, 16'd1, 16'd0}), .link_valid(has_link),
      .link_ready(link_ready), .link_type(nic_pkg::MSG_SYNC), .link_peer(link_peer), .req_valid(has_req),
      .req_ready(req_ready), .req_peer(req_peer), .req_high(12'd1), .req_low(12'd2), .res_valid(has_res),
      .res_ready(res_ready), .res_peer(res_peer), .res_high(12'd3), .res_low(12'd4), .busy(busy), .peer(peer),
      .kind(kind), .sent(sent), .failed(failed), .dma_valid(dma_valid), .dma_addr(dma_addr), .dma_data(dma_data),
      .dma_done(dma_done), .dma_error(fails)
  );
  wire [2:0] readies = {link_ready, req_ready, res_ready};
  wire [1:0] dest = (peer + 2'd1) ^ own_id;
  reg [1:0] passed_req = 0, passed_res = 0;
  reg taken = 1'b0;
  always @(posedge clk) if (!rst) begin
    has_link <= (has_link && !link_ready) || link;
    has_req <= (has_req && !req_ready) || req;
    has_res <= (has_res && !res_ready) || res;
    assert ((readies & (readies - 3'd1)) == 0);
    assert ((readies & ~{has_link, has_req, has_res}) == 0);
    assert (readies == 0 || !busy);
    assert (busy || readies != 0 || {has_link, has_req, has_res} == 0);
    assert (!has_link || !(req_ready || res_ready));
    taken <= readies != 0;
    assert (dma_valid == busy && (!taken || busy));
    assert (sent == dma_done && (!sent || failed == fails));
    if (dma_valid) begin
      assert (dma_addr[31:16] == {14'd0, dest} && dma_addr[15:12] == 4'd1);
      assert (dma_addr[11:6] == {4'd0, own_id});
      assert (dma_data[63:60] == kind && dma_data[53:52] == own_id && dma_data[49:48] == dest);
      if (kind == nic_pkg::MSG_REQ) assert (peer == req_peer && dma_addr[5:0] == 0 && dma_data[31:0] == {13'd1, 3'd0, 13'd2, 3'd0});
      else if (kind == nic_pkg::MSG_RES) assert (peer == res_peer && dma_addr[5:0] == 8 && dma_data[31:0] == {13'd3, 3'd0, 13'd4, 3'd0});
      else assert (kind == nic_pkg::MSG_SYNC && peer == link_peer && dma_addr[5:0] == 16 && dma_data[31:0] == 0);
    end
    if (!has_req || req_ready) passed_req <= 0;
    else if (res_ready) passed_req <= passed_req + 1'b1;
    if (!has_res || res_ready) passed_res <= 0;
    else if (req_ready) passed_res <= passed_res + 1'b1;
    assert (passed_req <= 1 && passed_res <= 1);
  end
endmodule

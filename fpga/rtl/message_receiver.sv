// SPDX-License-Identifier: MIT OR Apache-2.0
// Words written to the mailbox: which message each is, and of which peer. A message counts if its words agree with the
// place it was written to, and its source is there.
`default_nettype none

module message_receiver #(
    parameter NICS = 4,
    parameter EW = $clog2(NICS),
    parameter PEERS = NICS - 1,
    parameter PW = $clog2(PEERS)
) (
    input  wire             wr_valid,   // in the mailbox area, not with an error
    input  wire [11:0]      wr_addr,
    input  wire [63:0]      wr_data,
    input  wire [2:0]       own_id,
    input  wire [PEERS-1:0] present,
    output wire [EW-1:0]    source,
    output wire [PW-1:0]    peer,       // the same, as a slot
    output wire             got_req,
    output wire             got_res,
    output wire             got_sync,
    output wire             got_ack,
    output wire             got_nak,
    output wire             error       // none of these
);
  assign source = wr_addr[6+:EW];
  wire [EW-1:0] slot = source ^ own_id[EW-1:0];
  wire [EW-1:0] last = slot - 1'b1;
  assign peer = last[PW-1:0];
  wire [3:0] kind = wr_data[63:60];
  wire ours = wr_data[55:52] == {{(4 - EW){1'b0}}, source} && wr_data[51:48] == {1'b0, own_id}
      && {1'b0, wr_addr[11:6]} < NICS[6:0] && slot != 0;
  wire valid = wr_valid && ours && present[peer];
  assign got_req = valid && wr_addr[5:3] == 3'd0 && kind == nic_pkg::MSG_REQ;
  assign got_res = valid && wr_addr[5:3] == 3'd1 && kind == nic_pkg::MSG_RES;
  wire of_link = valid && wr_addr[5:3] == 3'd2;
  assign got_sync = of_link && kind == nic_pkg::MSG_SYNC;
  assign got_ack = of_link && kind == nic_pkg::MSG_ACK;
  assign got_nak = of_link && kind == nic_pkg::MSG_NAK;
  assign error = wr_valid && !(got_req || got_res || got_sync || got_ack || got_nak);
  wire unused = |{wr_addr[2:0], wr_data, last, own_id};
endmodule

`default_nettype wire

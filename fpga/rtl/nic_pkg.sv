// SPDX-License-Identifier: MIT OR Apache-2.0
// Constants that several blocks share: messages, address map, counters. Written by `cargo run -p causeway-nic-driver --bin nic-registers`
// from fpga/driver/src/registers/map.rs.
`default_nettype none

/* verilator lint_off UNUSEDPARAM */
package nic_pkg;
  // Message types, bits 63:60 of a message's first word.
  localparam [3:0] MSG_REQ = 4'd1;
  localparam [3:0] MSG_RES = 4'd2;
  localparam [3:0] MSG_BURST = 4'd3;
  localparam [3:0] MSG_PKT = 4'd4;
  localparam [3:0] MSG_SYNC = 4'd5;
  localparam [3:0] MSG_ACK = 4'd6;
  localparam [3:0] MSG_NAK = 4'd7;

  // Areas of BAR 0 (offsets). Bits 15:12 select.
  localparam [15:0] AREA_MAILBOX = 16'h1000;  // + 0x40 * source: REQ at +0, RES at +8, SYNC, ACK and NAK at +16
  localparam [15:0] AREA_SPLIT = 16'h2000;  // completions of the card's own reads
  localparam [15:0] AREA_BURST = 16'h8000;  // + 0x1000 * source: a burst's first word at +0 and no other one there

  // Registers (offsets in BAR 0) and their bits.
  localparam [11:0] REG_ID = 12'h000;
  localparam [11:0] REG_CONTROL = 12'h008;
  localparam integer BIT_CONTROL_ENABLE = 0;
  localparam integer BIT_CONTROL_DISCONNECT = 1;
  localparam [11:0] REG_OWN_ID = 12'h010;
  localparam [11:0] REG_OWN_MAC = 12'h018;
  localparam [11:0] REG_GRANT_MIN_WORDS = 12'h020;
  localparam [11:0] REG_SCHEDULER = 12'h028;
  localparam [11:0] REG_PATIENCE = 12'h030;
  localparam [11:0] REG_PARAMETERS = 12'h038;
  localparam [11:0] REG_IRQ_STATUS = 12'h040;
  localparam integer BIT_IRQ_RX = 0;
  localparam integer BIT_IRQ_TX = 1;
  localparam integer BIT_IRQ_ERROR = 2;
  localparam [11:0] REG_IRQ_ENABLE = 12'h048;
  localparam [11:0] REG_ERRORS = 12'h050;
  localparam integer BIT_ERROR_ABORT = 0;
  localparam integer BIT_ERROR_PARITY = 1;
  localparam integer BIT_ERROR_READ_TIMEOUT = 2;
  localparam integer BIT_ERROR_DESCRIPTOR = 3;
  localparam integer BIT_ERROR_PROTOCOL = 4;
  localparam integer BIT_ERROR_BURST_TIMEOUT = 5;
  localparam integer BIT_ERROR_PEER_DOWN = 6;
  localparam integer BIT_ERROR_RX_CUT = 7;
  localparam integer BIT_ERROR_TX_CUT = 8;
  localparam integer BIT_ERROR_OVERFLOW = 9;
  localparam [11:0] REG_RX_DESC_BASE = 12'h060;
  localparam [11:0] REG_RX_DESC_BASE_STRIDE = 12'h018;
  localparam [11:0] REG_RX_BUFFER_BASE = 12'h068;
  localparam [11:0] REG_RX_BUFFER_BASE_STRIDE = 12'h018;
  localparam [11:0] REG_RX_TAIL = 12'h070;
  localparam [11:0] REG_RX_TAIL_STRIDE = 12'h018;
  localparam [11:0] REG_TX_POST = 12'h0a0;
  localparam [11:0] REG_TX_DONE_ADDRESS = 12'h0a8;
  localparam [11:0] REG_TX_STATUS = 12'h0b0;
  localparam [11:0] REG_PEER_BASE = 12'h100;
  localparam integer BIT_PEER_PRESENT = 0;
  localparam [11:0] REG_PEER_STATE = 12'h140;
  localparam [11:0] REG_PEER_RESYNC = 12'h148;
  localparam [11:0] REG_RULES = 12'h180;
  localparam [11:0] REG_POLICY = 12'h188;
  localparam integer BIT_POLICY_WRITE_SOURCE_MAC = 0;
  localparam integer BIT_POLICY_DROP_BAD_CHECKSUM = 1;
  localparam integer BIT_POLICY_TTL_TO_HOST = 2;
  localparam [11:0] REG_ROUTE = 12'h400;
  localparam [11:0] REG_ROUTE_STRIDE = 12'h020;
  localparam integer BIT_ROUTE_VALID = 63;
  localparam integer BIT_ROUTE_EDGES = 62;
  localparam integer BIT_ROUTE_HOST = 61;
  localparam [11:0] REG_CLASS = 12'h600;
  localparam [11:0] REG_CLASS_STRIDE = 12'h020;
  localparam integer BIT_CLASS_ENABLE = 63;
  localparam [11:0] REG_COUNTERS = 12'h800;
  localparam [63:0] ID_VALUE = 64'h4341555300020000;
  localparam integer ROUTES = 16;

  // Events that are counted, in the order of the counter registers; the input FIFOs' drops follow.
  localparam integer EV_RX_FRAMES = 0;
  localparam integer EV_RX_BAD_FCS = 1;
  localparam integer EV_RX_BAD_LENGTH = 2;
  localparam integer EV_RX_CUT = 3;
  localparam integer EV_RX_NO_SFD = 4;
  localparam integer EV_RX_CROWDED = 5;
  localparam integer EV_RX_DISABLED = 6;
  localparam integer EV_DROP_TTL = 7;
  localparam integer EV_DROP_CHECKSUM = 8;
  localparam integer EV_DROP_TRUNCATED = 9;
  localparam integer EV_RX_FAST = 10;
  localparam integer EV_RX_SLOW = 11;
  localparam integer EV_SLOW_NO_PORT = 12;
  localparam integer EV_DROP_PEER_DOWN = 13;
  localparam integer EV_DROP_BURST = 14;
  localparam integer EV_DROP_STALE = 15;
  localparam integer EV_DROP_HOST = 16;
  localparam integer EV_TX_REFUSED = 17;
  localparam integer EV_TX_FAILED = 18;
  localparam integer EV_REQ_SENT = 19;
  localparam integer EV_RES_SENT = 20;
  localparam integer EV_BURSTS_SENT = 21;
  localparam integer EV_BURSTS_EMPTY = 22;
  localparam integer EV_TX_FAST = 23;
  localparam integer EV_TX_SLOW = 24;
  localparam integer EV_TX_FRAMES = 25;
  localparam integer EV_TX_CUT = 26;
  localparam integer EV_RX_TO_HOST = 27;
  localparam integer EV_BUS_DISCONNECTS = 28;
  localparam integer EV_BUS_ABORTS = 29;
  localparam integer EV_BUS_PARITY = 30;
  localparam integer EV_PEER_RESYNCS = 31;
  localparam integer EV_DROP_FIFO = 32;
endpackage
/* verilator lint_on UNUSEDPARAM */

`default_nettype wire

// Constants that several blocks share: messages, bus commands, address map. The driver's copy of the map is
// fpga/driver/src/registers.rs; a test compares the two.
`default_nettype none

package nic_pkg;
  // Message types, bits 63:60 of a message's first word.
  localparam [3:0] MSG_REQ = 4'd1;
  localparam [3:0] MSG_RES = 4'd2;
  localparam [3:0] MSG_BURST = 4'd3;
  localparam [3:0] MSG_PKT = 4'd4;

  // Bus commands: the four that the PCI-X-like bus needs.
  localparam [3:0] CMD_READ_DWORD = 4'h6;  // immediate read of one register
  localparam [3:0] CMD_SPLIT = 4'hc;       // split completion: data for an earlier read
  localparam [3:0] CMD_READ = 4'he;        // memory read block, answered with a split completion
  localparam [3:0] CMD_WRITE = 4'hf;       // memory write block

  // Areas of BAR 0 (offsets). Bits 15:12 select.
  localparam [15:0] AREA_MAILBOX = 16'h1000;  // + 0x40 * source: REQ at +0, RES at +8
  localparam [15:0] AREA_SPLIT = 16'h2000;    // completions of the card's own reads
  localparam [15:0] AREA_BURST = 16'h8000;    // + 0x1000 * source

  // Registers (offsets in BAR 0).
  localparam [11:0] REG_ID = 12'h000;
  localparam [11:0] REG_CONTROL = 12'h008;
  localparam [11:0] REG_OWN_ID = 12'h010;
  localparam [11:0] REG_OWN_MAC = 12'h018;
  localparam [11:0] REG_GRANT_MIN_WORDS = 12'h020;
  localparam [11:0] REG_IRQ_ENABLE = 12'h028;
  localparam [11:0] REG_RX_DESC_BASE = 12'h030;
  localparam [11:0] REG_RX_BUFFER_BASE = 12'h038;
  localparam [11:0] REG_RX_TAIL = 12'h040;
  localparam [11:0] REG_RX_RING_STRIDE = 12'h018;
  localparam [11:0] REG_TX_POST = 12'h060;
  localparam [11:0] REG_TX_DONE_ADDRESS = 12'h068;
  localparam [11:0] REG_PEER_BASE = 12'h080;
  localparam [11:0] REG_ROUTE = 12'h100;
  localparam [11:0] REG_CLASS = 12'h200;
  localparam [11:0] REG_COUNTERS = 12'h400;
  localparam [63:0] ID_VALUE = 64'h4341_5553_0001_0000;

  // Events that are counted, in the order of the counter registers; the input FIFOs' drops follow.
  localparam integer EV_RX_FRAMES = 0;
  localparam integer EV_RX_BAD_FCS = 1;
  localparam integer EV_RX_BAD_LENGTH = 2;
  localparam integer EV_DROP_TTL = 3;
  localparam integer EV_DROP_CHECKSUM = 4;
  localparam integer EV_DROP_TRUNCATED = 5;
  localparam integer EV_RX_FAST = 6;
  localparam integer EV_RX_SLOW = 7;
  localparam integer EV_REQ_SENT = 8;
  localparam integer EV_RES_SENT = 9;
  localparam integer EV_BURSTS_SENT = 10;
  localparam integer EV_BURSTS_EMPTY = 11;
  localparam integer EV_TX_FAST = 12;
  localparam integer EV_TX_SLOW = 13;
  localparam integer EV_RX_TO_HOST = 14;
  localparam integer EV_BUS_DISCONNECTS = 15;
  localparam integer EV_DROP_FIFO = 16;
endpackage

`default_nettype wire

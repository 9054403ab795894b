// SPDX-License-Identifier: MIT OR Apache-2.0
// Commands of the PCI-X-like bus: the four that are needed.
`default_nettype none

/* verilator lint_off UNUSEDPARAM */
package pcix_pkg;
  localparam [3:0] CMD_READ_DWORD = 4'h6;  // immediate read of one register
  localparam [3:0] CMD_SPLIT = 4'hc;       // split completion: data for an earlier read
  localparam [3:0] CMD_READ = 4'he;        // memory read block, answered with a split completion
  localparam [3:0] CMD_WRITE = 4'hf;       // memory write block
endpackage
/* verilator lint_on UNUSEDPARAM */

`default_nettype wire

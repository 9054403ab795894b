//! The register map for others: the Verilog package, and a page a block.

use std::fmt::Write as _;

use super::map::{AREAS, Access, BLOCKS, Block, COUNTER_TABLE, ID_VALUE, MESSAGES, ROUTES, Register};

const BY: &str = "cargo run -p causeway-nic-driver --bin nic-registers";

/// A file that is made from the map: path below `fpga`, and content.
pub type File = (String, String);

/// All files that are made from the map.
pub fn files() -> Vec<File> {
    let mut files = vec![("rtl/nic_pkg.sv".into(), package()), ("doc/registers/README.md".into(), index())];
    files.extend(BLOCKS.iter().map(|block| (format!("doc/registers/{}.md", block.name), page(block))));
    files
}

fn package() -> String {
    let mut s = format!(
        "// SPDX-License-Identifier: MIT OR Apache-2.0\n// Constants that several blocks share: messages, address map, \
         counters. Written by `{BY}`\n// from fpga/driver/src/registers/map.rs.\n`default_nettype none\n\n\
         /* verilator lint_off UNUSEDPARAM */\npackage nic_pkg;\n  // Message types, bits 63:60 of a message's first word.\n"
    );
    for (name, number) in MESSAGES {
        let _ = writeln!(s, "  localparam [3:0] MSG_{name} = 4'd{number};");
    }
    s += "\n  // Areas of BAR 0 (offsets). Bits 15:12 select.\n";
    for (name, offset, what) in AREAS {
        let _ = writeln!(s, "  localparam [15:0] AREA_{name} = 16'h{offset:04x};  // {what}");
    }
    s += "\n  // Registers (offsets in BAR 0) and their bits.\n";
    for register in BLOCKS.iter().flat_map(|block| block.registers) {
        let _ = writeln!(s, "  localparam [11:0] REG_{} = 12'h{:03x};", register.name, register.offset);
        if register.repeat.1 != 8 {
            let (name, stride) = (register.name, register.repeat.1);
            let _ = writeln!(s, "  localparam [11:0] REG_{name}_STRIDE = 12'h{stride:03x};");
        }
        for bit in register.bits {
            let _ = writeln!(s, "  localparam integer BIT_{} = {};", bit.name, bit.number);
        }
    }
    let _ = writeln!(s, "  localparam [63:0] ID_VALUE = 64'h{ID_VALUE:016x};");
    let _ = writeln!(s, "  localparam integer ROUTES = {ROUTES};");
    s += "\n  // Events that are counted, in the order of the counter registers; the input FIFOs' drops follow.\n";
    for (index, counter) in COUNTER_TABLE.iter().enumerate() {
        let _ = writeln!(s, "  localparam integer EV_{} = {index};", counter.name.to_uppercase());
    }
    let _ = writeln!(s, "  localparam integer EV_DROP_FIFO = {};", COUNTER_TABLE.len());
    s + "endpackage\n/* verilator lint_on UNUSEDPARAM */\n\n`default_nettype wire\n"
}

fn index() -> String {
    let mut s = format!(
        "# Registers\n\nAll are 64-bit words of BAR 0, at multiples of 8 bytes. These pages are written by `{BY}` from \
         `driver/src/registers/map.rs`, as is `rtl/nic_pkg.sv`.\n\n| block | offsets |\n|---|---|\n"
    );
    for block in BLOCKS {
        let offsets = |register: &Register| {
            let (count, stride) = register.repeat;
            (register.offset, register.offset + (count - 1) * stride + stride.min(32))
        };
        let first = block.registers.iter().map(|r| offsets(r).0).min().unwrap_or_default();
        let end = block.registers.iter().map(|r| offsets(r).1).max().unwrap_or_default();
        let _ =
            writeln!(s, "| [{name}]({name}.md) | 0x{first:03x} to 0x{:03x} |", end - 1, name = block.name);
    }
    s += "\nBeside them, in the same BAR:\n\n| area | offset | |\n|---|---|---|\n";
    for (name, offset, what) in AREAS {
        let _ = writeln!(s, "| {} | 0x{offset:04x} | {what} |", name.to_lowercase());
    }
    s
}

fn page(block: &Block) -> String {
    let mut s = format!("# {}\n\n{}\n\n", capital(block.name), line(block.doc));
    s += "| offset | register | access | |\n|---|---|---|---|\n";
    for register in block.registers {
        let (count, stride) = register.repeat;
        let offset = match (count, stride) {
            (1, _) => format!("0x{:03x}", register.offset),
            _ => format!("0x{:03x} + {stride} n, n < {count}", register.offset),
        };
        let access = match register.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::ReadWrite => "read, write",
            Access::Clear => "read, write 1 to clear",
        };
        let _ = writeln!(s, "| {offset} | {} | {access} | {} |", register.name, line(register.doc));
    }
    for register in block.registers.iter().filter(|register| !register.bits.is_empty()) {
        let _ = writeln!(s, "\n| bit of {} | name | |\n|---|---|---|", register.name);
        for bit in register.bits {
            let _ = writeln!(s, "| {} | {} | {} |", bit.number, bit.name, line(bit.doc));
        }
    }
    if block.name == "counters" {
        s += "\n| n | counter | |\n|---|---|---|\n";
        for (n, counter) in COUNTER_TABLE.iter().enumerate() {
            let _ = writeln!(s, "| {n} | {} | {} |", counter.name, line(counter.doc));
        }
        let first = COUNTER_TABLE.len();
        let _ = writeln!(
            s,
            "| {first} + 2 d + c | drop_fifo | Found the input FIFO of destination d and class c (1: high) full; the \
             own number is the host. |"
        );
    }
    s
}

/// A doc comment as one line.
fn line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_files_are_what_the_map_says() {
        let fpga = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for (path, content) in files() {
            let written = fs::read_to_string(fpga.join(&path)).unwrap_or_default();
            assert_eq!(written, content, "fpga/{path} is not what the map says; run: {BY}");
        }
    }

    #[test]
    fn registers_have_places_of_their_own() {
        let mut taken = std::collections::BTreeMap::new();
        for register in BLOCKS.iter().flat_map(|block| block.registers) {
            let (count, stride) = register.repeat;
            for n in 0..count {
                let at = register.offset + n * stride;
                // Routes and class rules have four words each.
                for word in (at..at + if stride == 32 { 32 } else { 8 }).step_by(8) {
                    let before = taken.insert(word, register.name);
                    assert_eq!(before, None, "{word:#x} of {}", register.name);
                }
            }
        }
        assert!(taken.keys().all(|&at| at < 0x1000 && at % 8 == 0));
    }
}

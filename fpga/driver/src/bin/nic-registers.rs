//! `nic-registers`: writes what is made from the register map, the Verilog package and the documentation.

use std::path::Path;
use std::process::ExitCode;

use causeway_nic_driver::registers::render;

fn main() -> ExitCode {
    let Some(fpga) = Path::new(env!("CARGO_MANIFEST_DIR")).parent() else { return ExitCode::FAILURE };
    for (path, content) in render::files() {
        let path = fpga.join(path);
        // What has not changed is left alone, so that nothing is built anew for it.
        if std::fs::read_to_string(&path).is_ok_and(|old| old == content) {
            continue;
        }
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, content));
        if let Err(e) = written {
            eprintln!("nic-registers: {}: {e}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

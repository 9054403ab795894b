//! Translates the Verilog with Verilator, compiles it, and writes a Rust type for each model from the ports that
//! the generated header declares.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is translated.
struct Model {
    /// The Rust type.
    name: &'static str,
    /// The top module, in `rtl` or `tb`.
    top: &'static str,
    parameters: &'static [&'static str],
    /// Text of the top module's file, and what to put in its place: a fault, to see that it is found.
    fault: Option<(&'static str, &'static str)>,
}

impl Model {
    const fn new(name: &'static str, top: &'static str, parameters: &'static [&'static str]) -> Self {
        Self { name, top, parameters, fault: None }
    }
}

const MODELS: [Model; 9] = [
    Model::new("Nic4", "nic_pcix", &["-GNICS=4"]),
    Model::new("Nic8", "nic_pcix", &["-GNICS=8"]),
    Model::new("Chipset", "chipset", &[]),
    Model::new("InputProcessing", "input_processing", &[]),
    Model::new("AsyncFifo", "async_fifo", &["-GW=32"]),
    Model::new("GearboxTx", "mac_gearbox_tx", &[]),
    // The two boards' delays.
    Model::new("DelayedRx", "rgmii_line", &["-GRX_DELAY=80"]),
    Model::new("DelayedTx", "rgmii_line", &["-GTX_DELAY=80"]),
    // Does not wait for the MAC.
    Model {
        fault: Some(("else if (m_axis_tready) begin", "else begin")),
        ..Model::new("FaultyGearboxTx", "mac_gearbox_tx", &[])
    },
];

/// A port: name, bits, whether the model drives it.
struct Port {
    name: String,
    bits: usize,
    output: bool,
}

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let verilator = env::var("VERILATOR").unwrap_or_else(|_| "verilator".into());
    let root = verilator_root(&verilator);
    println!("cargo::rerun-if-env-changed=VERILATOR");
    println!("cargo::rerun-if-changed=../rtl");
    println!("cargo::rerun-if-changed=../tb");
    println!("cargo::rerun-if-changed=../boards/common");
    println!("cargo::rerun-if-changed=build.rs");
    let waves = env::var("CARGO_FEATURE_WAVES").is_ok();

    // More than 2 takes longer to compile and is no faster.
    let level =
        env::var("OPT_LEVEL").ok().and_then(|level| level.parse().ok()).map_or(2, |level: u32| level.min(2));
    // What runs once needs no optimising.
    let [mut build, mut slow] = [level, 0].map(|level| {
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").warnings(false).debug(false).opt_level(level);
        build.flag_if_supported("-fno-strict-aliasing");
        build.include(root.join("include")).include(root.join("include/vltstd")).include(&out);
        build.define("VM_TRACE", if waves { "1" } else { "0" });
        build
    });
    for file in ["verilated.cpp", "verilated_threads.cpp"] {
        build.file(root.join("include").join(file));
    }
    if waves {
        build.file(root.join("include/verilated_vcd_c.cpp"));
    }
    let mut rust = String::new();
    for model in MODELS {
        let name = model.name;
        let dir = out.join(name);
        translate(&verilator, &model, &dir, waves);
        let header = fs::read_to_string(dir.join(format!("V{name}.h"))).expect("Verilator wrote the header");
        let ports = ports(&header);
        fs::write(dir.join("shim.cpp"), shim(name, &ports, waves)).expect("OUT_DIR is writable");
        rust += &binding(name, &ports);
        // As one unit, because each of the many files reads all of Verilator's headers.
        let mut units = [String::new(), String::new()];
        let mut files: Vec<_> = fs::read_dir(&dir).expect("the directory was just made").flatten().collect();
        files.sort_by_key(fs::DirEntry::file_name);
        for file in files.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
            if file.ends_with(".cpp") {
                let _ =
                    writeln!(units[usize::from(file.ends_with("Slow.cpp"))], "#include \"{name}/{file}\"");
            }
        }
        for (build, text, kind) in [(&mut build, &units[0], "fast"), (&mut slow, &units[1], "slow")] {
            let unit = out.join(format!("{name}_{kind}.cpp"));
            fs::write(&unit, text).expect("OUT_DIR is writable");
            build.include(&dir).file(unit);
        }
    }
    fs::write(out.join("models.rs"), rust).expect("OUT_DIR is writable");
    build.compile("nic_models");
    slow.compile("nic_models_slow");
    println!("cargo::rustc-link-lib=pthread");
}

fn verilator_root(verilator: &str) -> PathBuf {
    let answer = Command::new(verilator).args(["--getenv", "VERILATOR_ROOT"]).output();
    let answer = answer.unwrap_or_else(|e| panic!("{verilator}: {e}; the NIC's simulation needs Verilator"));
    PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim())
}

fn translate(verilator: &str, model: &Model, dir: &Path, waves: bool) {
    let Model { name, top, parameters, fault } = *model;
    // What an earlier build of other parameters left would be compiled in.
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).expect("OUT_DIR is writable");
    let in_folder = |folder| Path::new(folder).join(format!("{top}.sv"));
    let mut source = in_folder("../rtl");
    if !source.exists() {
        source = in_folder("../tb");
    }
    if let Some((from, to)) = fault {
        let text = fs::read_to_string(&source).expect("the module has a file");
        assert!(text.contains(from), "{top} no longer has what the fault changes");
        source = dir.join(format!("{top}.sv"));
        fs::write(&source, text.replace(from, to)).expect("OUT_DIR is writable");
    }
    let mut command = Command::new(verilator);
    command.args(["--cc", "-O3", "--assert", "-DASSERTIONS", "--x-initial", "unique"]);
    // The elaboration checks; the linter has the rest.
    command.args(["-Wno-fatal", "-Werror-USERERROR"]);
    command.args(["--output-split", "20000", "--top-module", top, "--prefix", &format!("V{name}")]);
    command.args(parameters).arg("--Mdir").arg(dir);
    if waves {
        command.arg("--trace");
    }
    command.args(["../rtl/nic_pkg.sv", "../rtl/pcix_pkg.sv", "-y", "../rtl", "-y", "../tb"]);
    command.args(["-y", "../boards/common", "+libext+.sv"]);
    let status = command.arg("../tb/axis_bind.sv").arg(source).status().expect("Verilator was found above");
    assert!(status.success(), "Verilator refused {top}");
}

/// Reads lines such as `VL_IN8(&clk,0,0);` and `VL_INW(&key,79,0,3);`.
fn ports(header: &str) -> Vec<Port> {
    let mut ports = Vec::new();
    for line in header.lines() {
        let Some(call) = line.trim().strip_prefix("VL_") else { continue };
        let Some((kind, arguments)) = call.split_once('(') else { continue };
        let output = kind.starts_with("OUT");
        if !output && !kind.starts_with("IN") {
            continue;
        }
        let arguments: Vec<&str> = arguments.trim_end_matches(");").split(',').collect();
        let name = arguments[0].trim_start_matches('&').to_string();
        let bits = arguments[1].parse::<usize>().expect("a bit number") + 1;
        ports.push(Port { name, bits, output });
    }
    ports
}

fn shim(model: &str, ports: &[Port], waves: bool) -> String {
    let mut s = format!("#include \"V{model}.h\"\n#include \"verilated.h\"\n");
    if waves {
        s += "#include \"verilated_vcd_c.h\"\n";
    }
    let tracer = if waves { "VerilatedVcdC* tracer = nullptr;" } else { "" };
    let _ = writeln!(
        s,
        "namespace {{ struct Holder {{ VerilatedContext context; V{model}* model; {tracer} }}; }}\nextern \"C\" {{\n\
         void* {model}_new(int seed) {{ auto* h = new Holder; h->context.randReset(2); h->context.randSeed(seed); \
         h->context.traceEverOn({waves}); h->model = new V{model}(&h->context); return h; }}\n\
         void {model}_delete(void* p) {{ auto* h = static_cast<Holder*>(p); h->model->final(); {close} delete h->model; delete h; }}\n\
         void {model}_eval(void* p) {{ static_cast<Holder*>(p)->model->eval(); }}",
        close = if waves { "if (h->tracer) { h->tracer->close(); delete h->tracer; }" } else { "" },
    );
    let _ = if waves {
        writeln!(
            s,
            "void {model}_open_waves(void* p, const char* path) {{ auto* h = static_cast<Holder*>(p); \
             h->tracer = new VerilatedVcdC; h->model->trace(h->tracer, 99); h->tracer->open(path); }}\n\
             void {model}_dump(void* p, uint64_t t) {{ auto* h = static_cast<Holder*>(p); if (h->tracer) h->tracer->dump(t); }}"
        )
    } else {
        writeln!(
            s,
            "void {model}_open_waves(void*, const char*) {{}}\nvoid {model}_dump(void*, uint64_t) {{}}"
        )
    };
    for port in ports {
        let member = format!("static_cast<Holder*>(p)->model->{}", port.name);
        let name = &port.name;
        let place = if port.bits > 64 { format!("{member}[word]") } else { member };
        if port.output {
            let _ = writeln!(
                s,
                "uint64_t {model}_get_{name}(void* p, unsigned word) {{ (void)word; return {place}; }}"
            );
        } else {
            let _ = writeln!(
                s,
                "void {model}_set_{name}(void* p, unsigned word, uint64_t v) {{ (void)word; {place} = v; }}"
            );
        }
    }
    s + "}\n"
}

fn binding(model: &str, ports: &[Port]) -> String {
    let mut ffi = String::new();
    let mut methods = String::new();
    for Port { name, bits, output } in ports {
        let wide = *bits > 64;
        let (extra, word) = if wide { (", word: usize", "word as u32") } else { ("", "0") };
        let what = if wide { "a 32-bit word of the" } else { "the" };
        if *output {
            let _ = writeln!(ffi, "    fn {model}_get_{name}(p: *mut c_void, word: u32) -> u64;");
            let bound = if wide { format!("assert!(word < {});", bits.div_ceil(32)) } else { String::new() };
            let _ = writeln!(
                methods,
                "    /// Reads {what} output `{name}`, {bits} bits.\n    #[inline]\n    pub fn {name}(&self{extra}) -> u64 {{ {bound}\n        \
                 // SAFETY: the handle is live and the word within the port.\n        unsafe {{ {model}_get_{name}(self.0, {word}) }} }}"
            );
        } else {
            let _ = writeln!(ffi, "    fn {model}_set_{name}(p: *mut c_void, word: u32, v: u64);");
            let bound = if wide { format!("assert!(word < {});", bits.div_ceil(32)) } else { String::new() };
            let _ = writeln!(
                methods,
                "    /// Sets {what} input `{name}`, {bits} bits.\n    #[inline]\n    pub fn set_{name}(&mut self{extra}, value: u64) {{ {bound}\n        \
                 // SAFETY: the handle is live, the word within the port, the access exclusive.\n        unsafe {{ {model}_set_{name}(self.0, {word}, value) }} }}"
            );
        }
    }
    format!(
        "#[allow(non_snake_case)]\nunsafe extern \"C\" {{\n    fn {model}_new(seed: i32) -> *mut c_void;\n    \
         fn {model}_delete(p: *mut c_void);\n    fn {model}_eval(p: *mut c_void);\n    \
         fn {model}_open_waves(p: *mut c_void, path: *const c_char);\n    fn {model}_dump(p: *mut c_void, time: u64);\n{ffi}}}\n\
         /// One instance of the model `{model}`; registers begin with random values.\npub struct {model}(*mut c_void);\n\
         impl {model} {{\n    /// A new instance; the seed chooses what uninitialised registers hold.\n    \
         pub fn new(seed: i32) -> Self {{\n        // SAFETY: the shim allocates the model and hands out the only handle.\n        Self(unsafe {{ {model}_new(seed) }}) }}\n    \
         /// Lets the inputs take effect.\n    #[inline]\n    pub fn eval(&mut self) {{\n        // SAFETY: the handle is live and the access exclusive.\n        unsafe {{ {model}_eval(self.0) }} }}\n    \
         /// Begins to write waves; without the feature `waves` this does nothing.\n    \
         pub fn open_waves(&mut self, path: &CStr) {{\n        // SAFETY: the handle is live and the path ends in a zero byte.\n        unsafe {{ {model}_open_waves(self.0, path.as_ptr()) }} }}\n    \
         /// Writes the present values to the waves, whose unit is a picosecond.\n    #[inline]\n    pub fn dump(&mut self, time_ps: u64) {{\n        // SAFETY: the handle is live and the access exclusive.\n        unsafe {{ {model}_dump(self.0, time_ps) }} }}\n{methods}}}\n\
         impl Drop for {model} {{ fn drop(&mut self) {{\n        // SAFETY: the handle is live, and this is its last use.\n        unsafe {{ {model}_delete(self.0) }} }} }}\n"
    )
}

//! Translates the Verilog with Verilator, compiles it, and writes a Rust type for each model from the ports that
//! the generated header declares.
//!
//! Each model is a shared library, and `make` beside it is the script that made it: a test that is built runs with another
//! card when `LD_LIBRARY_PATH` says so (`mutants/run`).

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

/// What is translated.
#[derive(Debug)]
struct Model {
    /// The Rust type.
    name: &'static str,
    /// The top module, in `rtl` or `tb`.
    top: &'static str,
    parameters: &'static [&'static str],
    /// Text of the top module's file, and what to put in its place: a fault, to see that it is found.
    fault: Option<(&'static str, &'static str)>,
    /// How much the compiler optimises. Of a card more than 1 takes longer than all tests win by it.
    level: u32,
}

impl Model {
    const fn new(name: &'static str, top: &'static str, parameters: &'static [&'static str]) -> Self {
        Self { name, top, parameters, fault: None, level: 1 }
    }
}

const MODELS: [Model; 9] = [
    Model::new("Nic4", "nic_pcix", &["-GNICS=4"]),
    Model::new("Nic8", "nic_pcix", &["-GNICS=8"]),
    Model::new("Chipset", "chipset", &[]),
    // A million frames.
    Model { level: 2, ..Model::new("InputProcessing", "input_processing", &[]) },
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

/// What all models have in common.
struct Tools {
    verilator: String,
    /// Verilator's own files, and its version.
    root: PathBuf,
    version: String,
    out: PathBuf,
    waves: bool,
    /// The runtime is there.
    made: OnceLock<()>,
}

fn main() {
    println!("cargo::rerun-if-env-changed=VERILATOR");
    for path in ["../rtl", "../tb", "../boards/common", "build.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let verilator = env::var("VERILATOR").unwrap_or_else(|_| "verilator".into());
    let ask = |what: &[&str]| {
        let answer = Command::new(&verilator).args(what).output();
        let answer =
            answer.unwrap_or_else(|e| panic!("{verilator}: {e}; the NIC's simulation needs Verilator"));
        String::from_utf8_lossy(&answer.stdout).trim().to_string()
    };
    let (root, version) = (ask(&["--getenv", "VERILATOR_ROOT"]).into(), ask(&["--version"]));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let waves = env::var("CARGO_FEATURE_WAVES").is_ok();
    let tools = Tools { verilator, root, version, out, waves, made: OnceLock::new() };

    let rust: String = thread::scope(|scope| {
        scope.spawn(|| tools.runtime());
        let models = MODELS.each_ref().map(|model| scope.spawn(|| tools.model(model)));
        models.map(|model| model.join().expect("it compiles")).concat()
    });
    fs::write(tools.out.join("models.rs"), rust).expect("OUT_DIR is writable");
    for name in MODELS.iter().map(|model| model.name) {
        let dir = tools.out.join(name);
        println!("cargo::rustc-link-search=native={}", dir.display());
        println!("cargo::rustc-link-lib=dylib={name}");
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}", dir.display());
    }
}

impl Tools {
    /// What Verilated models are linked with: an object, made once.
    fn runtime(&self) -> PathBuf {
        let dir = self.out.join("verilated");
        let object = dir.join("verilated.o");
        self.made.get_or_init(|| {
            self.unless_made(&dir, "", || {
                let mut files = vec!["verilated.cpp", "verilated_threads.cpp"];
                if self.waves {
                    files.push("verilated_vcd_c.cpp");
                }
                let text: String = files.iter().map(|file| format!("#include \"{file}\"\n")).collect();
                fs::write(dir.join("verilated.cc"), text).expect("OUT_DIR is writable");
                let compiler = self.compiler();
                shell(
                    &format!("{compiler} -O2 -c -o \"$2/verilated.o\" \"$2/verilated.cc\""),
                    Path::new("."),
                    &dir,
                );
                Vec::new()
            });
        });
        object
    }

    /// Makes a model's library; gives its Rust.
    fn model(&self, model: &Model) -> String {
        let name = model.name;
        let dir = self.out.join(name);
        let header = dir.join(format!("V{name}.h"));
        let read = |path: &Path| ports(&fs::read_to_string(path).expect("Verilator wrote the header"));
        let fpga = Path::new("..").canonicalize().expect("it is the folder above");
        self.unless_made(&dir, &format!("{model:?}"), || {
            let (translate, sources) = self.translate(model, &dir);
            shell(&translate, &fpga, &dir);
            let shim = dir.join("shim.cpp");
            fs::write(&shim, shim_of(name, &read(&header), self.waves)).expect("OUT_DIR is writable");
            let compile = self.compile(model);
            shell(&compile, &fpga, &dir);
            let again = format!(
                "#!/bin/sh -e\n# make FPGA FOLDER: makes this library anew there from other Verilog.\n\
                 mkdir -p \"$2\"\n{translate}cp {} \"$2\"\n{compile}",
                shim.display()
            );
            fs::write(dir.join("make"), again).expect("OUT_DIR is writable");
            read_files(&dir.join(format!("V{name}__ver.d")), &dir).into_iter().chain(sources).collect()
        });
        binding(name, &read(&header))
    }

    /// Makes what is in a folder, unless an earlier build did from the same: `make` says from which files.
    fn unless_made(&self, dir: &Path, what: &str, make: impl FnOnce() -> Vec<String>) {
        let state = |files: &[String]| {
            let mut hasher = DefaultHasher::new();
            (what, &self.version, self.waves, fs::read("build.rs").ok()).hash(&mut hasher);
            files.iter().for_each(|file| (file, fs::read(file).ok()).hash(&mut hasher));
            hasher.finish().to_string()
        };
        let stamp = dir.join("made-from");
        if let Ok(text) = fs::read_to_string(&stamp) {
            let lines: Vec<String> = text.lines().map(String::from).collect();
            if lines.split_first().is_some_and(|(before, files)| *before == state(files)) {
                return;
            }
        }
        // What an earlier build of other parameters left would be compiled in.
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir).expect("OUT_DIR is writable");
        let files = make();
        fs::write(stamp, format!("{}\n{}\n", state(&files), files.join("\n"))).expect("OUT_DIR is writable");
    }

    /// The command that translates, and the top module's file, which Verilator may not name.
    fn translate(&self, model: &Model, dir: &Path) -> (String, Option<String>) {
        let Model { name, top, parameters, fault, .. } = *model;
        let in_folder = |folder: &str| format!("../{folder}/{top}.sv");
        let folder = if Path::new(&in_folder("rtl")).exists() { "rtl" } else { "tb" };
        let (mut source, file) = (in_folder(folder), in_folder(folder));
        if let Some((from, to)) = fault {
            let text = fs::read_to_string(&source).expect("the module has a file");
            assert!(text.contains(from), "{top} no longer has what the fault changes");
            source = dir.join(format!("{top}.sv")).display().to_string();
            fs::write(&source, text.replace(from, to)).expect("OUT_DIR is writable");
        }
        let trace = if self.waves { "--trace" } else { "" };
        let text = format!(
            "cd \"$1/sim\"\n{verilator} --cc -O3 --assert -DASSERTIONS --x-initial unique \\\n\
             \x20   -Wno-fatal -Werror-USERERROR --output-split 20000 {trace} {parameters} \\\n\
             \x20   --top-module {top} --prefix V{name} --Mdir \"$2\" ../rtl/nic_pkg.sv ../rtl/pcix_pkg.sv \\\n\
             \x20   -y ../rtl -y ../tb -y ../boards/common +libext+.sv ../tb/axis_bind.sv {source}\n",
            verilator = self.verilator,
            parameters = parameters.join(" "),
        );
        (text, Some(file))
    }

    /// The command that compiles, as two units, because each of the many files reads all of Verilator's headers: what
    /// runs, and what runs once, which needs no optimising.
    fn compile(&self, model: &Model) -> String {
        let (compiler, Model { name, level, .. }) = (self.compiler(), model);
        format!(
            "cd \"$2\"\n: >fast.cc\n: >slow.cc\n\
             for file in *.cpp; do\n\
             \x20   case $file in *Slow.cpp) unit=slow ;; *) unit=fast ;; esac\n\
             \x20   echo \"#include \\\"$file\\\"\" >>$unit.cc\ndone\n\
             {compiler} -O{level} -c fast.cc\n{compiler} -O0 -c slow.cc\n\
             {compiler} -shared -Wl,-Bsymbolic -o lib{name}.so fast.o slow.o {}\n",
            self.runtime().display()
        )
    }

    /// The compiler with the options that all units have.
    fn compiler(&self) -> String {
        let include = self.root.join("include").display().to_string();
        format!(
            "{} -std=c++17 -fPIC -fno-semantic-interposition -fno-strict-aliasing -w -I. -I{include} -I{include}/vltstd -DVM_TRACE={}",
            env::var("CXX").unwrap_or_else(|_| "c++".into()),
            u8::from(self.waves)
        )
    }
}

/// Runs a script with the project's folder of Verilog and the folder to make.
fn shell(script: &str, fpga: &Path, dir: &Path) {
    let status =
        Command::new("sh").args(["-ec", script, "sh"]).args([fpga, dir]).status().expect("there is a shell");
    assert!(status.success(), "{script}");
}

/// The files that Verilator read, from a rule as make would read it: what was made, a colon, what it was made from.
fn read_files(rule: &Path, made: &Path) -> Vec<String> {
    let rule = fs::read_to_string(rule).expect("Verilator wrote it");
    let read = rule.split_once(" : ").expect("it is a rule").1.split_whitespace();
    read.filter(|file| file.ends_with(".sv") && !Path::new(file).starts_with(made))
        .map(String::from)
        .collect()
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

fn shim_of(model: &str, ports: &[Port], waves: bool) -> String {
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

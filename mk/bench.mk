# The router's benchmarks. BENCH_ARGS hands on what `causeway bench` takes, for example
#   make bench BENCH_ARGS="memory --rounds 9"
BENCH_OUTPUT ?= target/bench.json
.PHONY: bench
bench: build ## measure the router beside the kernel, as root; the results go to target/bench.json
	$(CAUSEWAY) bench $(BENCH_ARGS) --output $(BENCH_OUTPUT)

# The router's benchmarks. BENCH_ARGS hands on what `causeway bench` takes, for example
#   make bench BENCH_ARGS="memory --rounds 9"
#   make bench BENCH_ARGS="nat middleboxes --click /usr/local/bin/click"
BENCH_OUTPUT ?= target/bench.json
LUT_OUTPUT ?= target/bench-lut/lut.json
.PHONY: bench bench-lut
bench: build ## measure the router beside the kernel, as root; the results go to target/bench.json
	$(CAUSEWAY) bench $(BENCH_ARGS) --output $(BENCH_OUTPUT)

# The lookup paper's experiments take BENCH_ARGS too; the plots go beside the result file.
bench-lut: build ## the lookup paper's experiments, on the structures alone and inside the router
	$(CAUSEWAY) bench lut $(BENCH_ARGS) --output $(LUT_OUTPUT)

.PHONY: schema
schema: ## write the schema of results, docs/results/results.schema.json, from the code
	WRITE_SCHEMA=1 cargo test -p causeway-results schema

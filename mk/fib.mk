# The lookup tables' bench. FIB_BENCH_ARGS hands on real tables, for example
#   make bench-fib FIB_BENCH_ARGS="--v4 routes.txt.gz --v4-updates updates.txt.gz"
.PHONY: bench-fib
bench-fib: ## the lookup tables, against their rivals
	cargo run --release -p causeway-fib-bench -- $(FIB_BENCH_ARGS)

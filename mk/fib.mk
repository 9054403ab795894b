# The lookup tables' bench. FIB_BENCH_ARGS hands on real tables, for example
#   make bench-fib FIB_BENCH_ARGS="--v4 routes.txt.gz --v4-updates updates.txt.gz"
# With --output docs/results the page there becomes that of the run.
.PHONY: bench-fib bench-fib-readers bench-fib-worst bench-fib-policy
bench-fib: ## the lookup tables, against their rivals
	cargo run --release -p causeway-fib-bench -- $(FIB_BENCH_ARGS)

# What updates cost readers, and tables made to be slow.
bench-fib-readers: ## what updates cost readers of the lookup tables
	cargo run --release -p causeway-fib-bench -- disturb $(FIB_BENCH_ARGS)
bench-fib-worst: ## lookup tables made to be slow
	cargo run --release -p causeway-fib-bench -- worst

# Policy rules in front of a table.
bench-fib-policy: ## what policy rules cost
	cargo run --release -p causeway-fib-bench -- policy $(FIB_BENCH_ARGS)

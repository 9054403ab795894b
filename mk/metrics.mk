# What monitoring systems themselves say to the metrics: promtool of Debian's Prometheus, and the parser of its client for Python.
.PHONY: metrics-check
metrics-check: ## hold the metrics of a router against the parsers of Prometheus and OpenMetrics
	@$(MAKE) --no-print-directory build PROFILE=dev
	@mk/metrics target/debug/causeway

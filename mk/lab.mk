# The router tester.

.PHONY: lab

lab: build ## the kernel's forwarding and Causeway under the router tester: target/lab/lab.html (LAB_ARGS="--sizes 64,imix")
	@mkdir -p target/lab
	$(CAUSEWAY) lab run kernel causeway --output target/lab/lab.json $(LAB_ARGS)

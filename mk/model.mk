# The model of the papers' machines.
MODEL_OUT ?= target/model
.PHONY: model
model: build ## the papers' figures from a model of their machines: target/model/model-NAME.html (MODEL_ARGS="--why")
	@mkdir -p $(MODEL_OUT)
	$(CAUSEWAY) model all --out $(MODEL_OUT) $(MODEL_ARGS)
	$(CAUSEWAY) model cards --out $(MODEL_OUT)

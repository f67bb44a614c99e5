export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
SHELL := /bin/bash
.DEFAULT_GOAL := help

.PHONY: help run test check golden gen bench peers image

help: ## show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

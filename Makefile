# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python tests/run.py
WITH_SOURCES := PYTHONPATH=plugins/module_utils:roles/imds_simulator/files:tests
SIMULATOR := $(WITH_SOURCES) $(VENV)/bin/python -m imds_simulator

# Nothing is left behind in the user's home.
export ANSIBLE_HOME := $(CURDIR)/.cache/home/.ansible

.DEFAULT_GOAL := help
.PHONY: help venv rehearsal test test-list bench changelog collection clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo '  make test-STAGE   run one stage of the tests: make test-list names them'

venv: $(VENV)/for-tests  ## make .venv with everything that running and testing need

# the rehearsal uses the collection as it is published, built and installed, and free ports
rehearsal: collection  ## walk two simulated VMs through a maintenance event with ansible-playbook
	@$(VENV)/bin/ansible-galaxy collection install --force --offline --collections-path .cache/collections .cache/collection/*.tar.gz >/dev/null
	@ANSIBLE_COLLECTIONS_PATH=.cache/collections ANSIBLE_LOCALHOST_WARNING=false ANSIBLE_INVENTORY_UNPARSED_WARNING=false \
	    ANSIBLE_CALLBACK_RESULT_FORMAT=yaml \
	    $(SIMULATOR) exec --scenario live-migration --speed 60 --listen 127.0.0.1:0 --control 127.0.0.1:0 -- \
	    $(VENV)/bin/ansible-playbook azure_imds.scheduled_events.rehearsal

test: $(VENV)/for-tests  ## run all tests and checks
	@$(RUN)

test-list: $(VENV)/for-tests  ## say what the stages of the tests are: sanity, unit, lint, ...
	@$(RUN) --list

test-%: $(VENV)/for-tests
	@$(RUN) $*

bench: $(VENV)/for-rehearsal  ## measure, and print the tables
	@for bench in tests/bench/bench_*.py; do $(WITH_SOURCES) $(VENV)/bin/python "$$bench" || exit 1; done

changelog: $(VENV)/for-tests  ## turn changelogs/fragments into a release of the changelog
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" antsibull-changelog release --update-existing --reload-plugins --refresh-plugins prevent-removal

collection: $(VENV)/for-rehearsal  ## build the collection's archive in .cache/collection
	@rm -f .cache/collection/*.tar.gz
	@$(VENV)/bin/ansible-galaxy collection build --force --output-path .cache/collection

clean:  ## remove .venv and .cache
	rm -rf $(VENV) .cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or later is needed, and $(PYTHON) is not one; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	    { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/for-rehearsal: tests/requirements-rehearsal.txt | $(VENV)/bin/python
	@echo 'installing $< into $(VENV)'
	@$(VENV)/bin/python -m pip install -qq --requirement $<
	@touch $@

$(VENV)/for-tests: tests/requirements.txt $(VENV)/for-rehearsal
	@echo 'installing $< into $(VENV)'
	@$(VENV)/bin/python -m pip install -qq --requirement $<
	@touch $@

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

PYTHON ?= python3
VENV := .venv
NOX := $(VENV)/bin/nox
WITH_SOURCES := PYTHONPATH=plugins/module_utils:roles/imds_simulator/files:roles/hook_runner/files:salt/_utils:tests:tests/labs:.
SIMULATOR := $(WITH_SOURCES) $(VENV)/bin/python -m imds_simulator
INSTALL = $(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python

# What all checkouts of a user share: downloads, root file systems. A user without a home directory has it in the checkout.
# tests/support/shared_cache.py has the same rule.
OF_THE_USER := $(shell test -d "$$HOME" && { test -d "$$HOME/.cache" || mkdir "$$HOME/.cache" 2>/dev/null; } && test -w "$$HOME/.cache" && echo "$$HOME/.cache")
export XDG_CACHE_HOME := $(or $(XDG_CACHE_HOME),$(OF_THE_USER),$(CURDIR)/.cache/shared)
# Ansible keeps its own files below .cache, also those that it would put into the home directory of the user on a host:
# here that is the same user, who may have none. It takes nothing from the user's settings and locale.
unexport $(filter ANSIBLE_%,$(.VARIABLES))
export ANSIBLE_HOME := $(CURDIR)/.cache/home/.ansible
export ANSIBLE_REMOTE_TEMP := $(CURDIR)/.cache/home/.ansible/tmp
export LC_ALL := C.UTF-8

# The lanes of `make test` and what `make test-all` adds, each with its sessions of the noxfile.
LANES := unit system salt lint
lint_SESSIONS := lint extra-checks "sanity(own)"
unit_SESSIONS := unit
system_SESSIONS := system
salt_SESSIONS := "salt(3008)"
# in the order in which `make test-all` begins them: the longest first
ALL_LANES := labs ready-hooks unit system salt ansible-test salt-3006 lint release
OTHER_LANES := $(filter-out $(LANES),$(ALL_LANES))
ON_REQUEST := windows
# its tests run side by side; without this the lanes with one test at a time, which wait more, would end last
salt_PRIORITY := nice -n 5
ready-hooks_SESSIONS := ready-hooks
labs_SESSIONS := "labs(demo)" "labs(promises)" "labs(chaos)"
salt-3006_SESSIONS := "salt(3006)"
ansible-test_SESSIONS := "integration(oldest)" "integration(newest)" "sanity(newest)" units
release_SESSIONS := transport workflows release
windows_SESSIONS := windows

# The collection as it is published: built, and installed.
COLLECTIONS := .cache/collections
PUBLISHED := galaxy.yml README.md $(shell find extensions plugins playbooks roles meta -type f ! -name '*.pyc')

.DEFAULT_GOAL := help
.PHONY: help venv rehearsal test test-all $(LANES) $(OTHER_LANES) $(ON_REQUEST) soak chaos demo-zero-loss bench docs collection wheel simulator-wheel clean

help:
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

venv: $(VENV)/for-tests  ## make .venv with everything that running and testing need

# The event starts when it is approved, however long ansible-playbook takes to get there: at 20 simulated seconds a second, four hours of
# notice are twelve minutes. To see it start it has 15 seconds.
rehearsal: $(COLLECTIONS)/installed  ## walk two simulated VMs through a maintenance event with ansible-playbook
	@mkdir -p .cache/tmp
	@TMPDIR='$(CURDIR)/.cache/tmp' ANSIBLE_CONFIG=playbooks/rehearsal.cfg ANSIBLE_COLLECTIONS_PATH=$(COLLECTIONS) \
	    $(SIMULATOR) exec --scenario live-migration --speed 20 --knob notice_overrides=Freeze:4h \
	    --report .cache/rehearsal.html -- \
	    $(VENV)/bin/ansible-playbook azure_imds.scheduled_events.rehearsal

test: $(VENV)/for-tests  ## run checks and tests, in ten minutes; as root all of them, else the lanes lint and unit
	@exec $(VENV)/bin/python -m tools.lanes 3 $(LANES)

test-all: $(VENV)/for-tests  ## run everything, also what is marked `all`, in 75 minutes; needs root
	@exec env TESTS=all $(VENV)/bin/python -m tools.lanes 4 $(ALL_LANES)

$(OTHER_LANES): export TESTS := all
lint: ## run one lane of `make test`: lint, unit, system or salt; `nox -l` lists all sessions
$(LANES) $(OTHER_LANES) $(ON_REQUEST): $(VENV)/for-tests
	@LANE=$@ $($@_PRIORITY) $(NOX) --sessions $($@_SESSIONS)

# SOAK_FIRST=7: from this seed on; SOAK_LIVES=1000: so many
soak: $(VENV)/for-tests  ## run random lives of the hook runner in virtual time (SOAK_FIRST=7, SOAK_LIVES=1000)
	@$(WITH_SOURCES) $(VENV)/bin/python -m maintenance_world all $(or $(SOAK_FIRST),1) $(or $(SOAK_LIVES),1000)

# CHAOS_SEEDS=1-100: these; CHAOS_SEED=7: this one, with its timeline; CHAOS_OF=FOLDER: test the playbook of another checkout
chaos: $(VENV)/for-tests
	@$(WITH_SOURCES) $(VENV)/bin/python -m chaos $(if $(CHAOS_SEEDS),--seeds $(CHAOS_SEEDS)) $(if $(CHAOS_SEED),--seed $(CHAOS_SEED)) \
	    $(if $(CHAOS_JOBS),--jobs $(CHAOS_JOBS)) $(if $(CHAOS_OF),--of $(CHAOS_OF))

# DEMO_OF="nothing ours": only these handlings
demo-zero-loss: $(VENV)/for-tests
	@$(WITH_SOURCES) $(VENV)/bin/python -m demo $(DEMO_OF)

bench: $(VENV)/for-rehearsal  ## measure, and print the tables
	@for bench in tests/bench/bench_*.py; do $(WITH_SOURCES) $(VENV)/bin/python "$$bench" || exit 1; done

docs: $(VENV)/for-tests  ## build the site of the documentation in .cache/docs, and print the path of its first page
	@$(WITH_SOURCES) $(VENV)/bin/python -m tools.docs_site

collection: $(VENV)/for-rehearsal
	@rm -f .cache/collection/*.tar.gz
	@$(VENV)/bin/ansible-galaxy collection build --force --output-path .cache/collection

wheel: $(VENV)/for-rehearsal
	@$(VENV)/bin/uv build --quiet --clear --wheel --out-dir .cache/wheel salt

simulator-wheel: $(VENV)/for-rehearsal
	@$(VENV)/bin/uv build --quiet --clear --wheel --out-dir .cache/simulator-wheel roles/imds_simulator/files
	@ls .cache/simulator-wheel/*.whl

$(COLLECTIONS)/installed: $(VENV)/for-rehearsal $(PUBLISHED)
	@$(MAKE) --no-print-directory collection
	@ANSIBLE_COLLECTIONS_PATH=$(COLLECTIONS) $(VENV)/bin/ansible-galaxy collection install --force --offline \
	    --collections-path $(COLLECTIONS) .cache/collection/*.tar.gz >/dev/null
	@touch $@

clean:  ## remove .venv, .nox and .cache
	rm -rf $(VENV) .nox .cache

$(VENV)/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "$(PYTHON): not Python 3.11 or later; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	    { rm -rf $(VENV); echo "$(PYTHON): cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(VENV)/bin/python -m pip install -qq uv || \
	    { rm -rf $(VENV); echo "uv: not installed; the package index has to answer once" >&2; exit 1; }

$(VENV)/for-rehearsal: tests/requirements-rehearsal.txt | $(VENV)/bin/uv
$(VENV)/for-tests: tests/requirements.txt $(VENV)/for-rehearsal
$(VENV)/for-rehearsal $(VENV)/for-tests:
	@echo 'installing $< into $(VENV)'
	@$(INSTALL) --requirement $< || { echo "$<: not installed; the package index has to answer once" >&2; exit 1; }
	@touch $@

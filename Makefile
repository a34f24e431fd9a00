# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

PYTHON ?= python3
VENV := .venv
RUN := PYTHONPATH=tests $(VENV)/bin/python -m tools.run
WITH_SOURCES := PYTHONPATH=plugins/module_utils:roles/imds_simulator/files:tests:tests/labs:.
SIMULATOR := $(WITH_SOURCES) $(VENV)/bin/python -m imds_simulator

# Ansible keeps its own files below .cache, also those that it would put into the home directory of the user on a host: here that is the
# same user, who may have none. It takes nothing from the user's settings and locale.
unexport $(filter ANSIBLE_%,$(.VARIABLES))
export ANSIBLE_HOME := $(CURDIR)/.cache/home/.ansible
export ANSIBLE_REMOTE_TEMP := $(CURDIR)/.cache/home/.ansible/tmp
export LC_ALL := C.UTF-8

# The collection as it is published: built, and installed.
COLLECTIONS := .cache/collections
PUBLISHED := galaxy.yml README.md $(shell find extensions plugins playbooks roles meta -type f ! -name '*.pyc')

.DEFAULT_GOAL := help
.PHONY: help venv rehearsal quick test test-all test-list test-stages soak chaos demo-zero-loss salt-faults bench pictures recordings docs docs-pictures changelog collection wheel simulator-wheel clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo '  make test-STAGE   run one stage of the tests, whole: make test-list names them'

venv: $(VENV)/for-tests  ## make .venv with everything that running and testing need

# The event starts when it is approved, however long ansible-playbook takes to get there: at 20 simulated seconds a second, four hours of
# notice are twelve minutes. To see it start it has 15 seconds.
rehearsal: $(COLLECTIONS)/installed  ## walk two simulated VMs through a maintenance event with ansible-playbook
	@mkdir -p .cache/tmp
	@TMPDIR='$(CURDIR)/.cache/tmp' ANSIBLE_CONFIG=playbooks/rehearsal.cfg ANSIBLE_COLLECTIONS_PATH=$(COLLECTIONS) \
	    $(SIMULATOR) exec --scenario live-migration --speed 20 --knob notice_overrides=Freeze:4h --listen 127.0.0.1:0 --control 127.0.0.1:0 \
	    --report .cache/rehearsal.html -- \
	    $(VENV)/bin/ansible-playbook azure_imds.scheduled_events.rehearsal

quick: $(VENV)/for-tests  ## check format, types and unit tests of what has changed, in half a minute
	@PYTHONPATH=tests $(VENV)/bin/python -m tools.quick

test: $(VENV)/for-tests  ## run all stages of the tests, the long ones in their short form
	@exec env $(RUN)

test-all: $(VENV)/for-tests  ## run all stages whole, which takes about an hour
	@exec env $(RUN) --all

test-list: $(VENV)/for-tests  ## list the stages of the tests: sanity, units, lint, ...
	@$(RUN) --list

# STAGES="hosts recipes"
test-stages: $(VENV)/for-tests
	@exec env $(RUN) $(STAGES)

test-%: $(VENV)/for-tests
	@exec env $(RUN) $*

# SOAK_FOR=55m: begin no run after so long; SOAK_SEEDS=1-1000: these; SOAK_SEED=7: this one, with all that was done; SOAK_JOBS: side by side
soak: $(VENV)/for-tests  ## run random lives of the hook runner (SOAK_FOR=55m, SOAK_SEEDS=1-1000, SOAK_SEED=7)
	@$(WITH_SOURCES):roles/hook_runner/files $(VENV)/bin/python -m soak $(if $(SOAK_FOR),--for $(SOAK_FOR)) \
	    $(if $(SOAK_SEEDS),--seeds $(SOAK_SEEDS)) $(if $(SOAK_SEED),--seed $(SOAK_SEED)) $(if $(SOAK_JOBS),--jobs $(SOAK_JOBS))

# CHAOS_SEEDS=1-100: these; CHAOS_SEED=7: this one, with its timeline; CHAOS_OF=FOLDER: test the playbook of another checkout
chaos: $(VENV)/for-tests  ## disturb the maintenance playbook over real sshd; needs root (CHAOS_SEEDS=1-100, CHAOS_SEED=7, CHAOS_OF=FOLDER)
	@$(WITH_SOURCES) $(VENV)/bin/python -m chaos $(if $(CHAOS_SEEDS),--seeds $(CHAOS_SEEDS)) $(if $(CHAOS_SEED),--seed $(CHAOS_SEED)) \
	    $(if $(CHAOS_JOBS),--jobs $(CHAOS_JOBS)) $(if $(CHAOS_OF),--of $(CHAOS_OF))

# DEMO_OF="nothing ours": only these handlings
demo-zero-loss: $(VENV)/for-tests  ## count what maintenance events cost with and without ready hooks; needs root
	@$(WITH_SOURCES) $(VENV)/bin/python -m demo $(DEMO_OF)

# SALT_FAULTS_SERIES="3006 3008": of Salt; SALT_FAULTS_TIMES=2: each case so often; SALT_FAULTS_ONLY=EXPRESSION: as pytest's -k; SALT_FAULTS_JOBS: side by side
salt-faults: $(VENV)/for-tests  ## run every fault and attack on real Salt, and print a table (SALT_FAULTS_TIMES=2, SALT_FAULTS_SERIES=3008)
	@$(WITH_SOURCES) $(VENV)/bin/python -m tools.salt_faults $(if $(SALT_FAULTS_SERIES),--series $(SALT_FAULTS_SERIES)) \
	    $(if $(SALT_FAULTS_TIMES),--times $(SALT_FAULTS_TIMES)) $(if $(SALT_FAULTS_JOBS),--jobs $(SALT_FAULTS_JOBS)) \
	    $(if $(SALT_FAULTS_ONLY),--only '$(SALT_FAULTS_ONLY)')

bench: $(VENV)/for-rehearsal  ## measure, and print the tables
	@for bench in tests/bench/bench_*.py; do $(WITH_SOURCES) $(VENV)/bin/python "$$bench" || exit 1; done

# PICTURES="time-lines states": only these; screenshots needs Chromium and its driver, states and packages need graphviz if they change
pictures: $(VENV)/for-tests  ## make the images of docs/images from the code and from recorded runs (PICTURES="time-lines")
	@$(WITH_SOURCES):roles/hook_runner/files:salt/_utils $(VENV)/bin/python -m tools.pictures $(PICTURES)

# RECORDINGS="host": only these; playbook and salt need root, dashboard needs prometheus
recordings: $(VENV)/for-tests  ## record the runs of which `make pictures` draws time lines and the dashboard (RECORDINGS="host salt")
	@$(WITH_SOURCES):roles/hook_runner/files $(VENV)/bin/python -m tools.pictures.record $(RECORDINGS)

# without a network, and without Chromium
docs: $(VENV)/for-tests  ## build the site of the documentation in .cache/docs, and print the path of its first page
	@$(WITH_SOURCES):salt/_utils $(VENV)/bin/python -m tools.docs_site

docs-pictures: docs  ## write pictures of pages of this site into .cache/docs-screenshots; needs Chromium and its driver
	@$(WITH_SOURCES) $(VENV)/bin/python -m tools.docs_site.screenshots

changelog: $(VENV)/for-tests  ## turn changelogs/fragments into a release of the changelog
	@$(WITH_SOURCES) $(VENV)/bin/python -m tools.changelog

collection: $(VENV)/for-rehearsal  ## build the collection's archive in .cache/collection
	@rm -f .cache/collection/*.tar.gz
	@$(VENV)/bin/ansible-galaxy collection build --force --output-path .cache/collection

wheel: $(VENV)/for-rehearsal  ## build the wheel of salt/ in .cache/wheel
	@rm -rf .cache/wheel
	@$(VENV)/bin/python -m pip wheel -qq --no-deps --wheel-dir .cache/wheel ./salt

simulator-wheel: $(VENV)/for-rehearsal  ## build the wheel of the simulator in .cache/simulator-wheel
	@rm -rf .cache/simulator-wheel
	@$(VENV)/bin/python -m pip wheel -qq --no-deps --wheel-dir .cache/simulator-wheel ./roles/imds_simulator/files
	@ls .cache/simulator-wheel/*.whl

$(COLLECTIONS)/installed: $(VENV)/for-rehearsal $(PUBLISHED)
	@$(MAKE) --no-print-directory collection
	@ANSIBLE_COLLECTIONS_PATH=$(COLLECTIONS) $(VENV)/bin/ansible-galaxy collection install --force --offline \
	    --collections-path $(COLLECTIONS) .cache/collection/*.tar.gz >/dev/null
	@touch $@

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

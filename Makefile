# Commands for people. On a fresh Debian 12 with Rust and Python, `make demo` and `make test` need nothing before them.
#
#   TORCH=2.11.0   another torch than the newest that is supported
#   JOBS=4         in how many processes tests run
#   PYTHON=...     the Python that makes the virtual environment, 3.10 or newer
#   VENV=...       where the virtual environment goes

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?= python3
TORCH ?= 2.15.0
# Tests run in this many processes.
JOBS ?= 4
# What the long runs of operators run on.
DEVICE ?= dml
VENV ?= .venv

py := $(VENV)/bin/python
# One of torchvision's models is among the tests; for the newest torch there is no torchvision yet.
vision := $(if $(filter 2.11.%,$(TORCH)),torchvision==0.26.0)
environment := $(VENV)/.torch-$(TORCH)
package := $(VENV)/.package
sources = $(shell find Cargo.toml Cargo.lock pyproject.toml README.md crates plugin xtask python -type f \
	-not -name '*.so*' -not -name '*.pyc' -not -path '*.egg-info/*')

.PHONY: help
help:
	@echo "make demo   train a network on handwritten digits on the best device, then on the CPU"
	@echo "make test   run every test"
	@echo "make smoke  run the small set of tests"
	@echo "make smoke-profiles  run it on imitations of other adapters; PROFILES=\"minimum arm-mali\""
	@echo "make opinfo run PyTorch's own operator tests, all of them, and write docs/reference/operators.md"
	@echo "make device-generic  run PyTorch's own device-generic tests, PYTORCH=a source tree of the same release, and write docs/reference/device_generic.md"
	@echo "make fuzz   run random calls of the operators beside the CPU's, SECONDS=600 DEVICE=dml"
	@echo "make accuracy  measure the errors of operators beside the CPU's, and write their table in docs/reference/numerics.md"
	@echo "make test-libraries  run programs of other libraries on the device, and write docs/reference/libraries.md"
	@echo "make test-tensorflow  build the plugin for TensorFlow and run its tests; make wheel-tensorflow: its wheel in dist/"
	@echo "make tensorflow-upstream TENSORFLOW=folder  TensorFlow's own tests of operators, of a source tree"
	@echo "make robots-test  run the tests of the robots' package"
	@echo "make validate  run them, and those of Vulkan and the engine, under Vulkan's validation layer"
	@echo "make loom   run what threads share in every order of theirs"
	@echo "make test-address  run the engine's tests under AddressSanitizer; make test-miri: those without a device under miri"
	@echo "make test-newer-mesa  run every test on Mesa 26 under Debian 13; see scripts/newer-mesa.sh --help"
	@echo "make smoke-newer-mesa the small set of them"
	@echo "make smoke-swiftshader  run it on another software adapter; see scripts/swiftshader.sh --help"
	@echo "make gpus   compile the kernels of all tests with the drivers of GPUs that are not at hand, and write docs/reference/gpus.md; see scripts/other-gpus.sh --help"
	@echo "make smoke-gpus  compile those of the small set of tests for GPUS=\"navi31 skl\""
	@echo "make test-radeon  run every test on a Radeon that the processor plays, GPU=navi31 SHARD=0/20; see scripts/radeon.sh --help"
	@echo "make test-intel  run every test on an Intel GPU that the processor plays, GPU=tgl SHARD=0/20; see scripts/intel.sh --help"
	@echo "make smoke-radeon, make smoke-intel  the small set of them; make fuzz-radeon, make fuzz-intel: random calls there, SECONDS=600"
	@echo "make test-windows  build the crates for Windows and run their tests under Wine; see scripts/windows.sh --help"
	@echo "make test-hlsl  compile the smoke tests' kernels as HLSL and run them so; DXC=libdxcompiler.so HLSL_TESTS=tests for all"
	@echo "make lint   check the style of Rust and Python"
	@echo "make docs   build the site of the documentation in target/site; make docs-check: only check it"
	@echo "make tables write the plugin's list of hot operators and the page of elementwise functions, after a change of either table"
	@echo "make abi    write the C header and the Python module of the engine's interface, after a change of it"
	@echo "make wheel  make an installable wheel in dist/"
	@echo "make release  make the wheels for x86-64 and aarch64, with a bill of materials and hashes, in dist/; RELEASE=--help"
	@echo "make test-release  install the wheel in dist/ beside each supported torch and run the smoke tests; RELEASE=--help"
	@echo "make clean  remove what was built; make distclean: the virtual environments too"

.PHONY: demo
demo: system $(package)
	@$(py) -m torch_dml demo
	@echo
	@echo "A robot that learns: pip install -e robots, then dml-robot eval, dml-robot demo, dml-robot train (robots/README.md)"

# Every kernel that a test emits is kept here.
spirv := $(CURDIR)/target/spirv

.PHONY: test
test: test-system lint test-rust test-python test-spirv

.PHONY: test-rust
test-rust: test-system
	TORCH_DML_SPIRV_DIR=$(spirv) cargo test --workspace

# In parts, since a software adapter keeps the code of every kernel: a process that runs a quarter of all tests grows to
# 4.5 GB.
PARTS := 0/3 1/3 2/3
.PHONY: test-python
test-python: test-system $(package)
	failed=0; for part in $(PARTS); do \
		TEST_PART=$$part TORCH_DML_SPIRV_DIR=$(spirv) $(py) -m pytest -n $(JOBS) --dist loadfile || failed=1; \
	done; exit $$failed

# What the tests before it emitted and no earlier run of it has seen.
.PHONY: test-spirv
test-spirv: test-system
	$(PYTHON) scripts/check_spirv.py $(spirv)

.PHONY: smoke
smoke: test-system $(package)
	$(py) -m pytest -n $(JOBS) --dist loadfile -m smoke

# On adapters that are not at hand, imitated: docs/design/adapters.md.
PROFILES ?= minimum qualcomm-adreno
.PHONY: smoke-profiles
smoke-profiles: test-system $(package)
	for profile in $(PROFILES); do \
		TORCH_DML_PROFILE=$$profile TORCH_DML_SPIRV_DIR=$(spirv) $(py) -m pytest -n $(JOBS) --dist loadfile -m smoke; \
	done
	$(PYTHON) scripts/check_spirv.py $(spirv)

# Goes on where it was stopped. SHARD="--shard 0/20" runs a part, and writes no page. The page in docs
# is that of TORCH=2.11.0 on Mesa's software adapter.
SHARD ?=
.PHONY: opinfo
opinfo: test-system $(package)
	$(py) -m tests.opinfo $(SHARD) --jobs $(JOBS)

# Goes on where it was stopped. SHARD="--shard 0/20" runs a part. The files of tests are in no wheel: PYTORCH names a source tree,
# and without it only this project's suites run.
PYTORCH ?=
.PHONY: device-generic
device-generic: test-system $(package)
	$(py) -m tests.device_generic $(if $(PYTORCH),--pytorch $(PYTORCH),--suites) $(SHARD) --device $(DEVICE) --jobs $(JOBS) \
		--write docs/reference/device_generic.md

.PHONY: accuracy
accuracy: test-system $(package)
	$(py) -m tests.accuracy

# Random calls beside the CPU's: SECONDS=600 DEVICE=dml:0; `python -m tests.fuzz --help` says more.
SECONDS ?= 600
.PHONY: fuzz
fuzz: test-system $(package)
	$(py) -m tests.fuzz --seconds $(SECONDS) --device $(DEVICE) --jobs $(JOBS)

# What stands in $(VENV), and the libraries at the versions that the page names. The page is that of TORCH=2.11.0 on
# Mesa's software adapter.
libraries := $(VENV)-libraries
.PHONY: test-libraries
test-libraries: test-system $(package) $(libraries)/.installed
	$(libraries)/bin/python -m tests.libraries --jobs $(JOBS) --write docs/reference/libraries.md

$(libraries)/.installed: tests/libraries/requirements.txt $(environment)
	rm -rf $(libraries)
	$(py) -m venv $(libraries)
	folder='import sysconfig; print(sysconfig.get_path("purelib"))'; \
		$(py) -c "$$folder" > "$$($(libraries)/bin/python -c "$$folder")/torch.pth"
	$(libraries)/bin/python -m pip install --no-deps -r tests/libraries/requirements.txt
	touch $@

# TensorFlow and PyTorch share nothing but the engine: an environment of its own. TENSORFLOW_TESTS chooses a part.
tensorflow := $(VENV)-tensorflow
TENSORFLOW_TESTS ?=
.PHONY: test-tensorflow wheel-tensorflow
test-tensorflow: test-system $(tensorflow)/.installed
	cargo build --package dml-tensorflow
	cd tensorflow-dml && $(CURDIR)/$(tensorflow)/bin/python -m pytest -n $(JOBS) --dist loadfile $(TENSORFLOW_TESTS)

# TensorFlow's own tests of operators; no wheel has them: TENSORFLOW names a source tree of the installed release.
.PHONY: tensorflow-upstream
tensorflow-upstream: test-system $(tensorflow)/.installed
	cargo build --package dml-tensorflow
	cd tensorflow-dml/tests && PYTHONPATH=$(CURDIR)/tensorflow-dml/python $(CURDIR)/$(tensorflow)/bin/python \
		-m upstream --tensorflow $(abspath $(TENSORFLOW)) --jobs $(JOBS) \
		--write $(CURDIR)/docs/reference/tensorflow_tests.md

wheel-tensorflow: test-system $(tensorflow)/.installed
	$(tensorflow)/bin/python -m pip wheel --no-build-isolation --no-deps --wheel-dir dist ./tensorflow-dml
	@ls dist/tensorflow_dml*.whl

# tf_keras asks for a TensorFlow of its own version, which would be installed over the other.
$(tensorflow)/.installed: tensorflow-dml/tests/requirements.txt
	rm -rf $(tensorflow)
	$(PYTHON) -m venv $(tensorflow)
	$(tensorflow)/bin/python -m pip install --quiet -r $<
	$(tensorflow)/bin/python -m pip install --quiet --no-deps tf_keras==2.21.0
	touch $@

# An environment of its own, so that what the robots need is not there in the tests of the device.
robots := $(VENV)-robots
.PHONY: robots-test
robots-test: test-system $(package) $(robots)/.installed
	OMP_NUM_THREADS=1 $(robots)/bin/python -m pytest -n $(JOBS) --dist loadfile robots/tests

$(robots)/.installed: robots/pyproject.toml $(environment)
	rm -rf $(robots)
	$(py) -m venv $(robots)
	folder='import sysconfig; print(sysconfig.get_path("purelib"))'; \
		$(py) -c "$$folder" > "$$($(robots)/bin/python -c "$$folder")/torch.pth"
	$(robots)/bin/python -m pip install --quiet -e "robots[test]"
	touch $@

# One Rust test at a time, so that a message stands with its test. docs/design/validation.md says what this proves.
# The tests of operators also build every kernel again that a lookup finds, and describe every call before they run it.
.PHONY: validate
validate: export TORCH_DML_VALIDATION := 1
validate: validate-system $(package)
	cargo test --package dml-vulkan --package dml-engine -- --test-threads=1
	cargo test --package dml-vulkan --test validation -- --ignored
	TORCH_DML_CHECK_KERNELS=1 TORCH_DML_CHECK_INFERENCE=1 $(py) -m pytest -n $(JOBS) --dist loadfile -m smoke

# The types that threads share without the queue's lock, in every order that their threads can come in,
# with up to three changes of the thread in the middle of its work. They are tests named loom_*.
.PHONY: loom
loom: test-system
	RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 cargo test --package dml-engine --lib --target-dir target/loom loom_

# Both of these need Rust's nightly, and miri its component: rustup toolchain install nightly --component miri,rust-src
#
# What uses memory by address, while it runs: the engine, the graphics interface and the C ABI. What a driver leaves
# allocated at the end is its own affair. A kernel's accesses are seen on a software adapter alone, and only by luck: its
# code is not instrumented.
host = $(shell rustc -vV | sed -n 's/^host: //p')
.PHONY: test-address
test-address: test-system
	RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS=detect_leaks=0 cargo +nightly test --target $(host) \
		--target-dir target/address --lib --tests --package dml-environment --package dml-gpu --package dml-vulkan \
		--package dml-engine --package dml-torch

# The parts that need no device: miri interprets Rust, and knows neither Vulkan nor other processes. Left out is what opens
# a device, starts a process, or asks the system for what miri has no answer to.
miri-skips := kernels::store kernels::kernel memory::host_pool memory::device_memory adapter_records queue::thread transfer::polled \
	profile::measure
.PHONY: test-miri
test-miri: test-system
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --target-dir target/miri --lib \
		--package dml-environment --package dml-kernel --package dml-engine --package dml-torch -- $(addprefix --skip ,$(miri-skips))

.PHONY: test-newer-mesa
test-newer-mesa: test-system $(package)
	cargo test --config "target.'cfg(all())'.runner = '$(CURDIR)/scripts/newer-mesa.sh'" \
		--package dml-gpu --package dml-kernel --package dml-vulkan --package dml-engine --lib --tests
	TORCH_DML_SPIRV_DIR=$(spirv) scripts/newer-mesa.sh $(py) -m pytest -n $(JOBS) --dist loadfile
	scripts/newer-mesa.sh $(py) scripts/check_spirv.py $(spirv)

.PHONY: smoke-newer-mesa
smoke-newer-mesa: test-system $(package)
	TORCH_DML_SPIRV_DIR=$(spirv) scripts/newer-mesa.sh $(py) -m pytest -n $(JOBS) --dist loadfile -m smoke
	scripts/newer-mesa.sh $(py) scripts/check_spirv.py $(spirv)

.PHONY: smoke-swiftshader
smoke-swiftshader: test-system $(package)
	scripts/swiftshader.sh $(py) -m pytest -n $(JOBS) --dist loadfile -m smoke

# What was recorded and compiled is in target/gpus, and is not done again: `python -m tests.gpus --help`. The page
# is that of TORCH=2.11.0.
GPUS ?= navi31 skl bmg 740
.PHONY: gpus smoke-gpus
gpus: test-system $(package)
	$(py) -m tests.gpus --jobs $(shell nproc) --write docs/reference/gpus.md
smoke-gpus: test-system $(package)
	$(py) -m tests.gpus $(GPUS) --tests "-m smoke" --no-bench --jobs $(shell nproc)

# The machine code of RADV and of ANV for a GPU, executed: docs/design/radeon-player.md and intel-player.md.
# SHARD=0/20 or PLAYED_TESTS=tests/pointwise chooses a part.
test-radeon smoke-radeon fuzz-radeon ci-radeon: GPU ?= navi31
test-intel smoke-intel fuzz-intel ci-intel: GPU ?= tgl
.PHONY: test-radeon test-intel smoke-radeon smoke-intel fuzz-radeon fuzz-intel ci-radeon ci-intel
test-radeon test-intel: test-%: test-system $(package)
	$(if $(SHARD),TEST_SHARD=$(SHARD)) scripts/$*.sh $(GPU) $(py) -m pytest -n $(JOBS) --dist loadfile $(PLAYED_TESTS)
smoke-radeon smoke-intel: smoke-%: test-system $(package)
	scripts/$*.sh $(GPU) $(py) -m pytest -n $(JOBS) --dist loadfile -m smoke $(PLAYED_TESTS)
# A decomposition in float64, which Xe computes in software, keeps the driver's compiler busy for half a minute by itself.
fuzz-radeon fuzz-intel: fuzz-%: test-system $(package)
	scripts/$*.sh $(GPU) $(py) -m tests.fuzz --seconds $(SECONDS) --device dml --jobs $(JOBS) --timeout 600
# What runs at every commit: the smoke tests and the recorded bits of pointwise results on a Radeon, two folders of
# smoke tests on Intel, whose driver compiles more slowly.
ci-radeon: smoke-radeon
	scripts/radeon.sh $(GPU) $(py) -m pytest -n $(JOBS) --dist load tests/pointwise/test_bits.py
ci-intel: PLAYED_TESTS = tests/products tests/reduction
ci-intel: smoke-intel

# Installs what it needs itself. Wine's prefix and what is built are in target.
.PHONY: test-windows
test-windows: test-system
	scripts/windows.sh test

# plugin/engine.h and python/torch_dml/abi.py, from the sources of crates/torch.
.PHONY: abi
abi: test-system
	WRITE=1 cargo test --package dml-torch --test abi

# plugin/operators/hot_operators.h, from the table of operators of crates/aten, and
# docs/reference/elementwise.md, from the catalogue of crates/compute.
.PHONY: tables
tables: test-system
	WRITE=1 cargo test --package dml-aten --package dml-compute --lib is_what_the_table_says

# The crates that have rustdoc.
documented := -p dml-environment -p dml-log -p dml-gpu -p dml-kernel -p dml-vulkan -p dml-engine -p dml-compute -p dml-aten -p dml-torch \
	-p dml-tensorflow

.PHONY: lint
lint: test-system $(environment)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --quiet --no-deps $(documented)
	$(py) -m ruff format --check python examples tests scripts robots tensorflow-dml
	$(py) -m ruff check python examples tests scripts robots tensorflow-dml
	$(py) scripts/import_circles.py
	$(py) scripts/third_party_notices.py --check
	$(py) scripts/docs --check
	$(py) scripts/check_width.py
	$(VENV)/bin/clang-format --dry-run --Werror $(shell find plugin -name "*.cpp" -o -name "*.h")
	$(py) -m mypy python/torch_dml python/torch_directml python/torch_dml_autoload.py \
		tests/accuracy tests/opinfo tests/fuzz tests/gpus tests/host_reads tests/libraries/*.py tests/device_generic/*.py tests/support/workers.py \
		tests/support/shards.py tests/support/json_lines.py tests/support/torch_versions.py examples/*.py \
		scripts/check_width.py scripts/import_circles.py scripts/third_party_notices.py
	$(py) -m mypy tensorflow-dml/python/tensorflow_dml tensorflow-dml/python/tensorflow_dml_autoload.py

# The site, with rustdoc beside it. The generated parts of the pages are written first.
docs := $(VENV)-docs
build-docs = NO_MKDOCS_2_WARNING=1 $(docs)/bin/mkdocs build
.PHONY: docs
docs: $(docs)/.installed
	$(docs)/bin/python scripts/docs
	$(build-docs)
	cargo doc --quiet --no-deps $(documented)
	rm -rf target/site/rust
	cp -r target/doc target/site/rust

# What is generated is up to date, lines are short, and links and anchors lead somewhere. It needs no torch.
.PHONY: docs-check
docs-check: $(docs)/.installed
	$(docs)/bin/python scripts/docs --check
	$(build-docs) --site-dir target/site-check

$(docs)/.installed: scripts/docs/requirements.txt
	rm -rf $(docs)
	$(PYTHON) -m venv $(docs)
	$(docs)/bin/python -m pip install --quiet -r $<
	touch $@

.PHONY: wheel
wheel: system $(environment)
	$(py) -m pip wheel --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist/*.whl

# Every kernel of the tests as HLSL, through Microsoft's compiler; then those tests again with what it made. DXC names the
# compiler's library, which is not installed here. HLSL_TESTS chooses the tests: "tests" for all, "tests/pointwise/test_bits.py" for
# the recorded bits of pointwise results.
HLSL_TESTS ?= -m smoke
hlsl := $(CURDIR)/target/hlsl
run-hlsl = TORCH_DML_HLSL_DIR=$(hlsl) TORCH_DML_CACHE_DIR=$(hlsl)/cache $(py) -m pytest -n $(JOBS) --dist loadfile $(HLSL_TESTS)
.PHONY: test-hlsl
test-hlsl: test-system $(package)
	@test -n "$(DXC)" || { echo 'error: DXC=libdxcompiler.so is missing; see scripts/check_hlsl.py --help' >&2; exit 2; }
	rm -rf $(hlsl)
	$(run-hlsl)
	$(py) scripts/check_hlsl.py $(hlsl) --dxc $(DXC) --jobs $(JOBS)
	$(run-hlsl)
	$(py) scripts/check_hlsl.py $(hlsl) --ran

# Wheels of the last commit that install on any Linux from glibc 2.28 on, for every supported torch. RELEASE passes options:
# RELEASE="--platform manylinux_2_28_x86_64 --torch 2.15.0".
RELEASE ?=
.PHONY: release
release: release-system .venv-release/.installed
	.venv-release/bin/python scripts/release $(RELEASE)

# Into a fresh environment for every torch, from the wheel alone.
.PHONY: test-release
test-release: .venv-release/.installed
	.venv-release/bin/python scripts/release/trial.py $(RELEASE)

.venv-release/.installed: scripts/release/requirements.txt | release-system
	rm -rf .venv-release
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet -r $<
	touch $@

.PHONY: clean
clean:
	cargo clean
	rm -rf build dist tensorflow-dml/build python/torch_dml/lib python/torch_dml.egg-info .pytest_cache .ruff_cache .mypy_cache
	rm -f .venv*/.package

.PHONY: distclean
distclean: clean
	rm -rf .venv .venv-*

# What the system lacks is installed where that is allowed; otherwise the command is printed.
.PHONY: system test-system validate-system release-system
system:
	@PYTHON="$(PYTHON)" scripts/install-system.sh build
test-system:
	@PYTHON="$(PYTHON)" scripts/install-system.sh test
validate-system:
	@PYTHON="$(PYTHON)" scripts/install-system.sh validate
release-system:
	@PYTHON="$(PYTHON)" scripts/install-system.sh release

$(environment): | system
	test -x $(py) || $(PYTHON) -m venv $(VENV)
	$(py) -m pip install --upgrade pip
	$(py) -m pip install "torch==$(TORCH)" "setuptools>=77" "rich>=13" "numpy" "scikit-learn>=1.3" "pytest>=9" \
		"pytest-xdist>=3" "expecttest" "ruff==0.17.6" "mypy==2.4.1" "clang-format==20.1.8" $(vision)
	rm -f $(VENV)/.torch-* $(package)
	touch $@

# The libraries are built first: pip would keep quiet for the minutes that this takes.
$(package): $(environment) $(sources) | system
	torch=$$($(py) -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])'); \
		cargo run --quiet --package xtask -- build --torch "$$torch"
	$(py) -m pip install --quiet --no-build-isolation --no-deps --force-reinstall .
	touch $@

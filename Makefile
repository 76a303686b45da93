# The CUDA lessons. `make` builds what this machine can run, `make help` lists the rest.
LESSONS := $(filter-out 07_%,$(patsubst %/,%,$(sort $(dir $(wildcard [0-9][0-9]_*/*.cu)))))

.DEFAULT_GOAL := all
include common/build.mk

.PHONY: all run test torch clean help info
all: $(BINARIES) $(EXTRA_BINARIES)
	@: $(info $(TC_WHY))

# Every program of the lessons; with ARGS only the main program of each, such as 02_saxpy/saxpy.
# (scripts/run_lessons --help says which one is the main program)
run: $(BINARIES) $(EXTRA_BINARIES)
	@scripts/run_lessons $(if $(ARGS),--main --args '$(ARGS)') $(BINARIES)

test:
	@scripts/run_tests $(TESTS)

# The optional lesson: PYTHON names the Python that has PyTorch.
torch:
	@+$(MAKE) LESSONS=07_pytorch_extension all
	@BACKEND='$(BACKEND)' SMS='$(if $(SMS),$(TC_SMS))' PYTHON='$(PYTHON)' 07_pytorch_extension/make_torch

clean:
	$(SHOW)rm -rf $(BUILD) $(BINARIES) $(wildcard $(addsuffix .part*,$(BINARIES))) $(EXTRA_BINARIES) $(EXTRA_CLEAN)

info:
	@NVCC='$(NVCC)' CUDA_PATH='$(CUDA_PATH)' BACKEND='$(BACKEND)' SMS='$(SMS)' CXX='$(CCBIN)' \
		scripts/toolchain --text
	@echo 'would build: $(PROGRAMS)' | fold -s -w 100

help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

#: Targets
#:   all           build every lesson for this machine (the default)
#:   run           build, run every program, and count passed, failed and waived ones
#:   test          the test suite; installs pytest into .venv when it is missing
#:   torch         build and test the optional lesson 07; PYTHON=... names the Python with PyTorch
#:   info          what was found on this machine and what would be built
#:   clean         remove what was built
#:   02_saxpy/saxpy, or in a lesson's folder: saxpy    one program
#:
#: Variables
#:   BACKEND=cuda|cpu   for a GPU or for this CPU       [what this machine can run]
#:   SMS="80 90a 120"   GPU architectures; also 8.6, native, all, all-major   [the GPUs here]
#:   LESSONS="01_hello_grid 02_saxpy"   these alone     ARGS="--n 1M"   for `make run`
#:   CUDA_PATH=DIR, NVCC=PROGRAM, CCBIN=g++-12          which toolkit, which host compiler
#:   dbg=1              -G -g -O0 for cuda-gdb and gdb  [-O3 -lineinfo]
#:   EXTRA_NVCCFLAGS="-Xptxas -v"                       more flags for every program
#:   O=DIR              build into another folder       V=1   show the commands

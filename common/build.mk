# build.mk - how a lesson is built. The root Makefile and each lesson's Makefile include it.
#
# What to build with and for (backend, compiler, architectures) is found out by scripts/toolchain;
# here are the rules. In a lesson's folder every goal is handed to the root Makefile, so that there
# is one set of rules, one set of paths and one record of what was built how.

ifeq ($(filter 4.% 5.%,$(MAKE_VERSION)),)
$(error GNU make 4 or newer is needed, this is $(MAKE_VERSION): try gmake, or install a newer make)
endif
ifneq ($(words $(CURDIR)),1)
$(error the path '$(CURDIR)' contains a space, which make cannot handle: move the project to another path)
endif
ifneq ($(words $(O)),$(if $(O),1,0))
$(error O='$(O)' contains a space: choose another folder for the build)
endif
ifneq ($(filter-out 0 1,$(dbg) $(V)),)
$(error dbg='$(dbg)' V='$(V)': each of the two is 1 or 0)
endif

ifeq ($(wildcard common/build.mk),)
# ---- in a lesson's folder: 'make', 'make saxpy', 'make run ARGS=...' act on this lesson alone
LESSON := $(notdir $(CURDIR))
LESSON_PROGRAMS := $(basename $(wildcard *.cu))
.PHONY: all run test clean help info $(LESSON_PROGRAMS)
all run test clean help info:
	@+$(MAKE) --no-print-directory -C .. LESSONS=$(LESSON) $(if $(O),O=$(abspath $(O))) $@
$(LESSON_PROGRAMS):
	@+$(MAKE) --no-print-directory -C .. LESSONS=$(LESSON) $(if $(O),O=$(abspath $(O))) \
		$(if $(O),$(abspath $(O))/)$(LESSON)/$@
else
# ---- at the root
comma := ,
OUT := $(if $(O),$(O:/=)/)
BUILD := $(OUT)build
override LESSONS := $(LESSONS:/=)
$(foreach lesson,$(LESSONS),$(if $(wildcard $(lesson)/*.cu),,\
	$(error LESSONS: there is no lesson '$(lesson)'; there are $(sort $(patsubst %/,%,$(dir $(wildcard [0-9][0-9]_*/*.cu)))))))
PROGRAMS := $(basename $(foreach lesson,$(LESSONS),$(wildcard $(lesson)/*.cu)))
BINARIES := $(addprefix $(OUT),$(PROGRAMS))
EXTRA_BINARIES := # a lesson's lesson.mk adds what it builds besides

# Goals that build nothing need no toolchain.
ifneq ($(filter-out clean help,$(or $(MAKECMDGOALS),all)),)
ifneq ($(shell mkdir -p $(BUILD) && NVCC='$(NVCC)' CUDA_PATH='$(CUDA_PATH)' BACKEND='$(BACKEND)' \
	SMS='$(SMS)' CXX='$(CCBIN)' scripts/toolchain >$(BUILD)/toolchain.$$PPID \
	&& mv $(BUILD)/toolchain.$$PPID $(BUILD)/toolchain.mk || echo failed),)
$(error $(BUILD) cannot be written: choose another folder for the build with O=DIR)
endif
include $(BUILD)/toolchain.mk
endif
ifneq ($(TC_ERROR),)
$(error $(TC_ERROR))
endif

MAKEFLAGS += --no-print-directory
# One job a core unless the user chose a number.
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

NVCCFLAGS = $(if $(filter 1,$(dbg)),-G -g -O0,-O3 -lineinfo) -Xcompiler -Wall$(comma)-Wextra \
	$(TC_GENCODE) $(if $(CCBIN),-ccbin $(CCBIN)) $(EXTRA_NVCCFLAGS)
COMPILE = $(TC_NVCC) $(NVCCFLAGS)
SHOW = $(if $(filter 1,$(V)),,@)
SAY = $(if $(filter 1,$(V)),:,echo '  $(if $(filter cpu,$(TC_BACKEND)),CPU ,CUDA)  $@')
CPU_PARTS := $(if $(filter cpu,$(TC_BACKEND)),scripts/nvcc-cpu $(shell find common/cpu -type f))

# The command of the last build of each lesson is kept in a file, which every program depends on:
# another SMS, backend, flag or compiler rebuilds the lesson, the same ones rebuild nothing.
# (cat, not $(file <...): make learned to read files in 4.2.)
COMMAND := $(COMPILE) $(shell '$(TC_NVCC)' --version 2>/dev/null | tail -n 1)
define keep_command
ifneq ($$(shell cat $(BUILD)/$(1)/command 2>/dev/null),$$(COMMAND))
$$(shell mkdir -p $(BUILD)/$(1) $(OUT)$(1))
$$(file >$(BUILD)/$(1)/command,$$(COMMAND))
endif
endef
ifneq ($(filter-out clean help info test,$(or $(MAKECMDGOALS),all)),) # these build no lesson here
$(foreach lesson,$(sort $(dir $(PROGRAMS))),$(eval $(call keep_command,$(lesson:/=))))
endif

# Written under another name and renamed: an interrupted build leaves no program that looks whole.
.DELETE_ON_ERROR:
.SECONDEXPANSION:
$(BINARIES): $(OUT)%: %.cu $(CPU_PARTS) $(BUILD)/$$(dir %)command
	@$(SAY)
	$(SHOW)$(COMPILE) -MMD -MP -MF $(BUILD)/$*.d -MT $@ -o $@.part $< && mv -f $@.part $@
-include $(addprefix $(BUILD)/,$(addsuffix .d,$(PROGRAMS)))
-include $(wildcard $(addsuffix /lesson.mk,$(LESSONS)))
endif

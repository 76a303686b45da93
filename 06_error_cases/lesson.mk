# What lesson 06 builds besides its programs: files for one GPU architecture each, whatever SMS says,
# so that there is always one that is wrong for the card at hand. Needs nvcc, and no GPU.
# error_cases prints sources: it has to find them, wherever the program and the user are.
$(OUT)06_error_cases/error_cases: EXTRA_NVCCFLAGS += -DSOURCE_FOLDER='"$(CURDIR)/06_error_cases"'

EXTRA_CLEAN += $(OUT)06_error_cases/checked \
	$(filter-out %.cu,$(wildcard $(OUT)06_error_cases/images/*))

ifeq ($(TC_BACKEND),cuda)
IMAGES := $(OUT)06_error_cases/images
# Without the Tegra chips: machine code is not promised to be compatible between them and the others.
IMAGE_TEGRA := 53 62 72 87 88 101 110
IMAGE_ARCHS := $(filter-out $(IMAGE_TEGRA),$(shell '$(TC_NVCC)' --list-gpu-code 2>/dev/null | \
	sed -n 's/^sm_\([0-9]*\)$$/\1/p' | sort -n))
IMAGE_MAJORS := $(filter %0 75,$(IMAGE_ARCHS)) # 75 stands for 7.x where the toolkit dropped 7.0
IMAGE_EXACT := $(addsuffix a,$(filter 90 100 120,$(IMAGE_ARCHS)))
IMAGE_PTX := $(firstword $(IMAGE_ARCHS)) $(lastword $(IMAGE_ARCHS))

IMAGE_SASS_FILES := $(addprefix $(IMAGES)/sass_,$(IMAGE_ARCHS) $(IMAGE_EXACT))
IMAGE_PTX_FILES := $(addprefix $(IMAGES)/ptx_,$(IMAGE_PTX))
IMAGE_FILES := $(IMAGE_SASS_FILES) $(IMAGE_PTX_FILES) $(IMAGES)/fat
BUILD_PROBES := $(IMAGES)/build_plain $(IMAGES)/build_debug
EXTRA_BINARIES += $(IMAGE_FILES) $(BUILD_PROBES)

$(IMAGE_SASS_FILES): IMAGE_FLAGS = -gencode arch=compute_$(@F:sass_%=%),code=sm_$(@F:sass_%=%)
$(IMAGE_PTX_FILES): IMAGE_FLAGS = -gencode arch=compute_$(@F:ptx_%=%),code=compute_$(@F:ptx_%=%)
$(IMAGES)/fat: IMAGE_FLAGS = $(foreach sm,$(IMAGE_MAJORS),-gencode arch=compute_$(sm),code=sm_$(sm)) \
	-gencode arch=compute_$(lastword $(IMAGE_MAJORS)),code=compute_$(lastword $(IMAGE_MAJORS))
$(IMAGE_FILES): 06_error_cases/images/image_probe.cu 06_error_cases/lesson.mk
	@$(SAY)
	@mkdir -p $(@D)
	$(SHOW)$(TC_NVCC) $(IMAGE_FLAGS) $(if $(CCBIN),-ccbin $(CCBIN)) -o $@.part $< && mv -f $@.part $@

$(IMAGES)/build_debug: IMAGE_FLAGS = -G
$(IMAGES)/build_plain: IMAGE_FLAGS = -O3
$(BUILD_PROBES): 06_error_cases/images/build_probe.cu common/check.h $(BUILD)/06_error_cases/command
	@$(SAY)
	@mkdir -p $(@D)
	$(SHOW)$(TC_NVCC) $(IMAGE_FLAGS) $(TC_GENCODE) $(if $(CCBIN),-ccbin $(CCBIN)) -o $@.part $< && mv -f $@.part $@
endif

# On the CPU backend: the programs whose faults a check finds, compiled with that check. Where the
# compiler lacks it, an empty file stands for it, and error_cases does without.
ifeq ($(TC_BACKEND),cpu)
CHECKED := $(OUT)06_error_cases/checked
CHECKED_FILES := $(addprefix $(CHECKED)/,wrong_result_address launch_failure_address missing_barrier_race)
EXTRA_BINARIES += $(CHECKED_FILES)
$(CHECKED)/%_address: CHECK_FLAGS = -fsanitize=address
$(CHECKED)/%_race: CHECK_FLAGS = --racecheck
define checked_rule
$(CHECKED)/$(1): 06_error_cases/$(2).cu $(wildcard 06_error_cases/*.h common/*.h) $(CPU_PARTS) \
		06_error_cases/lesson.mk
	@$$(SAY)
	@mkdir -p $$(@D)
	$$(SHOW)$$(TC_NVCC) -O1 -g $$(CHECK_FLAGS) -o $$@.part $$< 2>$$@.log && rm -f $$@.log || \
		{ echo '        $$@: not possible with this compiler ($$@.log)'; : >$$@.part; }
	$$(SHOW)mv -f $$@.part $$@
endef
$(foreach file,$(notdir $(CHECKED_FILES)),$(eval $(call checked_rule,$(file),$(patsubst %_race,%,$(file:_address=)))))
endif

.PHONY: images-06
images-06: $(IMAGE_FILES)

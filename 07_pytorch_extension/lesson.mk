# Besides the programs: the kernels as a library of their own, for ctypes and for C programs.
THRESHOLD_RELU_LIBRARY := $(OUT)07_pytorch_extension/libthreshold_relu.so
EXTRA_BINARIES += $(THRESHOLD_RELU_LIBRARY)
$(THRESHOLD_RELU_LIBRARY): $(addprefix 07_pytorch_extension/csrc/,threshold_relu.cu threshold_relu.h) \
		$(CPU_PARTS) $(BUILD)/07_pytorch_extension/command
	@$(SAY)
	$(SHOW)$(COMPILE) -shared -Xcompiler -fPIC -o $@.part $< && mv -f $@.part $@
EXTRA_CLEAN += $(addprefix 07_pytorch_extension/,build threshold_relu/_C.abi3.so)

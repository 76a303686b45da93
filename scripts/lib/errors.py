"""What an error says, what it means, and what to do: one table for check_env --explain and for judge.py.

TABLE holds every CUDA runtime error by number, name and text. EXPLAIN adds meaning and remedy to those that
people meet. MESSAGES holds what nvcc, gcc, ld, PyTorch, nvidia-smi and the container tools print.
Every explanation carries the code under which judge.py reports the case.
"""

import re

# number, name without cudaError, text of cudaGetErrorString (CUDA 13.0). A test compares it with the toolkit.
TABLE_TEXT = """
1 InvalidValue: invalid argument
2 MemoryAllocation: out of memory
3 InitializationError: initialization error
4 CudartUnloading: driver shutting down
5 ProfilerDisabled: profiler disabled while using external profiling tool
6 ProfilerNotInitialized: profiler not initialized: call cudaProfilerInitialize()
7 ProfilerAlreadyStarted: profiler already started
8 ProfilerAlreadyStopped: profiler already stopped
9 InvalidConfiguration: invalid configuration argument
12 InvalidPitchValue: invalid pitch argument
13 InvalidSymbol: invalid device symbol
16 InvalidHostPointer: invalid host pointer
17 InvalidDevicePointer: invalid device pointer
18 InvalidTexture: invalid texture reference
19 InvalidTextureBinding: texture is not bound to a pointer
20 InvalidChannelDescriptor: invalid channel descriptor
21 InvalidMemcpyDirection: invalid copy direction for memcpy
22 AddressOfConstant: invalid address of constant
23 TextureFetchFailed: fetch from texture failed
24 TextureNotBound: cannot fetch from a texture that is not bound
25 SynchronizationError: incorrect use of __syncthreads()
26 InvalidFilterSetting: linear filtering not supported for non-float type
27 InvalidNormSetting: read as normalized float not supported for data type
28 MixedDeviceExecution: device emulation mode and device execution mode cannot be mixed
31 NotYetImplemented: feature not yet implemented
32 MemoryValueTooLarge: memory size or pointer value too large to fit in 32 bit
34 StubLibrary: CUDA driver is a stub library
35 InsufficientDriver: CUDA driver version is insufficient for CUDA runtime version
36 CallRequiresNewerDriver: API call is not supported in the installed CUDA driver
37 InvalidSurface: invalid surface reference
43 DuplicateVariableName: duplicate global variable looked up by string name
44 DuplicateTextureName: duplicate texture looked up by string name
45 DuplicateSurfaceName: duplicate surface looked up by string name
46 DevicesUnavailable: CUDA-capable device(s) is/are busy or unavailable
49 IncompatibleDriverContext: incompatible driver context
52 MissingConfiguration: __global__ function call is not configured
53 PriorLaunchFailure: unspecified launch failure in prior launch
65 LaunchMaxDepthExceeded: launch would exceed maximum depth of nested launches
66 LaunchFileScopedTex: launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)
67 LaunchFileScopedSurf: launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are supported)
68 SyncDepthExceeded: cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth
69 LaunchPendingCountExceeded: launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount
98 InvalidDeviceFunction: invalid device function
100 NoDevice: no CUDA-capable device is detected
101 InvalidDevice: invalid device ordinal
102 DeviceNotLicensed: device doesn't have valid Grid license
103 SoftwareValidityNotEstablished: integrity checks failed
127 StartupFailure: startup failure in cuda runtime
200 InvalidKernelImage: device kernel image is invalid
201 DeviceUninitialized: invalid device context
205 MapBufferObjectFailed: mapping of buffer object failed
206 UnmapBufferObjectFailed: unmapping of buffer object failed
207 ArrayIsMapped: array is mapped
208 AlreadyMapped: resource already mapped
209 NoKernelImageForDevice: no kernel image is available for execution on the device
210 AlreadyAcquired: resource already acquired
211 NotMapped: resource not mapped
212 NotMappedAsArray: resource not mapped as array
213 NotMappedAsPointer: resource not mapped as pointer
214 ECCUncorrectable: uncorrectable ECC error encountered
215 UnsupportedLimit: limit is not supported on this architecture
216 DeviceAlreadyInUse: exclusive-thread device already in use by a different thread
217 PeerAccessUnsupported: peer access is not supported between these two devices
218 InvalidPtx: a PTX JIT compilation failed
219 InvalidGraphicsContext: invalid OpenGL or DirectX context
220 NvlinkUncorrectable: uncorrectable NVLink error detected during the execution
221 JitCompilerNotFound: PTX JIT compiler library not found
222 UnsupportedPtxVersion: the provided PTX was compiled with an unsupported toolchain.
223 JitCompilationDisabled: PTX JIT compilation was disabled
224 UnsupportedExecAffinity: the provided execution affinity is not supported
225 UnsupportedDevSideSync: the provided PTX contains unsupported call to cudaDeviceSynchronize
226 Contained: Invalid access of peer GPU memory over nvlink or a hardware error
300 InvalidSource: device kernel image is invalid
301 FileNotFound: file not found
302 SharedObjectSymbolNotFound: shared object symbol not found
303 SharedObjectInitFailed: shared object initialization failed
304 OperatingSystem: OS call failed or operation not supported on this OS
400 InvalidResourceHandle: invalid resource handle
401 IllegalState: the operation cannot be performed in the present state
402 LossyQuery: attempted introspection would be semantically lossy
500 SymbolNotFound: named symbol not found
600 NotReady: device not ready
700 IllegalAddress: an illegal memory access was encountered
701 LaunchOutOfResources: too many resources requested for launch
702 LaunchTimeout: the launch timed out and was terminated
703 LaunchIncompatibleTexturing: launch uses incompatible texturing mode
704 PeerAccessAlreadyEnabled: peer access is already enabled
705 PeerAccessNotEnabled: peer access has not been enabled
708 SetOnActiveProcess: cannot set while device is active in this process
709 ContextIsDestroyed: context is destroyed
710 Assert: device-side assert triggered
711 TooManyPeers: peer mapping resources exhausted
712 HostMemoryAlreadyRegistered: part or all of the requested memory range is already mapped
713 HostMemoryNotRegistered: pointer does not correspond to a registered memory region
714 HardwareStackError: hardware stack error
715 IllegalInstruction: an illegal instruction was encountered
716 MisalignedAddress: misaligned address
717 InvalidAddressSpace: operation not supported on global/shared address space
718 InvalidPc: invalid program counter
719 LaunchFailure: unspecified launch failure
720 CooperativeLaunchTooLarge: too many blocks in cooperative launch
721 TensorMemoryLeak: tensor memory not completely freed
800 NotPermitted: operation not permitted
801 NotSupported: operation not supported
802 SystemNotReady: system not yet initialized
803 SystemDriverMismatch: system has unsupported display driver / cuda driver combination
804 CompatNotSupportedOnDevice: forward compatibility was attempted on non supported HW
805 MpsConnectionFailed: MPS client failed to connect to the MPS control daemon or the MPS server
806 MpsRpcFailure: the remote procedural call between the MPS server and the MPS client failed
807 MpsServerNotReady: MPS server is not ready to accept new MPS client requests
808 MpsMaxClientsReached: the hardware resources required to create MPS client have been exhausted
809 MpsMaxConnectionsReached: the hardware resources required to support device connections have been exhausted
810 MpsClientTerminated: the MPS client has been terminated by the server
811 CdpNotSupported: is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it
812 CdpVersionMismatch: unsupported interaction between different versions of CUDA Dynamic Parallelism
900 StreamCaptureUnsupported: operation not permitted when stream is capturing
901 StreamCaptureInvalidated: operation failed due to a previous error during capture
902 StreamCaptureMerge: operation would result in a merge of separate capture sequences
903 StreamCaptureUnmatched: capture was not ended in the same stream as it began
904 StreamCaptureUnjoined: capturing stream has unjoined work
905 StreamCaptureIsolation: dependency created on uncaptured work in another stream
906 StreamCaptureImplicit: operation would make the legacy stream depend on a capturing blocking stream
907 CapturedEvent: operation not permitted on an event last recorded in a capturing stream
908 StreamCaptureWrongThread: attempt to terminate a thread-local capture sequence from another thread
909 Timeout: wait operation timed out
910 GraphExecUpdateFailure: the graph update was not performed because it included changes which violated constraints specific to instantiated graph update
911 ExternalDevice: an async error has occured in external entity outside of CUDA
912 InvalidClusterSize: a kernel launch error has occurred due to cluster misconfiguration
913 FunctionNotLoaded: the function handle is not loaded when calling an API that requires a loaded function
914 InvalidResourceType: one or more resources passed in are not valid resource types for the operation
915 InvalidResourceConfiguration: one or more resources are insufficient or non-applicable for the operation
999 Unknown: unknown error
"""

TABLE = {}
for _line in TABLE_TEXT.strip().splitlines():
    _head, _text = _line.split(": ", 1)
    _number, _name = _head.split(" ")
    TABLE[int(_number)] = ("cudaError" + _name, _text)

# Other texts of the same errors: older toolkits, and the driver API's names where they are not built alike.
OTHER_TEXTS = [
    (46, "all CUDA-capable devices are busy or unavailable"),
    (209, "no kernel image"),
    (209, "no kernel image is available for execution"), (209, "No device code available for GPU ISA"),
    (222, "PTX was compiled with an unsupported toolchain"), (100, "no CUDA-capable device"),
    (700, "illegal memory access"), (2, "CUDA out of memory"),
    (804, "forward compatibility was attempted"), (803, "unsupported display driver"),
    (710, "device-side assert"), (701, "too many resources requested"), (719, "unspecified launch failure"),
]
DRIVER_NAMES = {
    "CUDA_ERROR_NO_BINARY_FOR_GPU": 209, "CUDA_ERROR_OUT_OF_MEMORY": 2, "CUDA_ERROR_NOT_INITIALIZED": 3,
    "CUDA_ERROR_DEINITIALIZED": 4, "CUDA_ERROR_DEVICE_UNAVAILABLE": 46, "CUDA_ERROR_INVALID_IMAGE": 200,
    "CUDA_ERROR_INVALID_CONTEXT": 201, "CUDA_ERROR_INVALID_HANDLE": 400, "CUDA_ERROR_NOT_FOUND": 500,
    "CUDA_ERROR_LAUNCH_FAILED": 719, "CUDA_ERROR_INVALID_SOURCE": 300, "ERROR_JIT_COMPILER_NOT_FOUND": 221,
    "CUDA_ERROR_MAP_FAILED": 205, "CUDA_ERROR_OPERATING_SYSTEM": 304, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE": 216,
    "CUDA_ERROR_SYSTEM_NOT_READY": 802, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": 803,
}
for _number, (_name, _) in list(TABLE.items()):
    _driver = "CUDA_ERROR_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _name[len("cudaError"):]).upper()
    DRIVER_NAMES.setdefault(_driver, _number)

# Numbers that meant something else before CUDA 10.1; old posts still use them.
OLD_NUMBERS = {4: 719, 6: 702, 7: 701, 8: 98, 10: 101, 11: 1, 29: 4, 30: 999, 33: 400, 34: 600, 38: 100, 39: 214,
               47: 200, 48: 209, 59: 710, 72: 714, 73: 715, 74: 716, 76: 718, 77: 700, 78: 218, 82: 720}

# Texts so common outside CUDA that they count only on a line that speaks of CUDA, or as the whole input.
GENERIC = {1, 2, 3, 16, 101, 200, 201, 205, 206, 300, 301, 304, 400, 401, 500, 600, 701, 714, 715, 716, 718, 719, 800,
           801, 999, 909}

_STICKY = ("The error is sticky: every later call in this process repeats it, and the call that reports it is not "
           "the culprit.")
_FIND = ("compute-sanitizer ./prog names the thread and the line (build with -lineinfo); or CUDA_LAUNCH_BLOCKING=1 "
         "./prog makes the culprit report itself.")
_NO_IMAGE = ("The file holds no code that this GPU can use. Machine code (SASS) runs only inside one major compute "
             "capability, on the same minor or a higher one; PTX compiles for its own architecture and later ones.")

# number -> code, what it means, what to do, and what need not be changed (or "").
EXPLAIN = {
    1: ("INVALID_ARGUMENT",
        "A call or a launch got a value that it cannot take: more than 1024 threads a block, an empty grid, more "
        "dynamic shared memory than allowed (48 KiB without cudaFuncSetAttribute), a copy beyond an allocation, a "
        "pointer that cudaMalloc did not return. Bad launches that older toolkits reported as 9 come back as 1.",
        "Print the numbers of the call that failed. CUDA_LOG_FILE=stderr ./prog lets a driver of 575 or later say "
        "which limit was passed.", ""),
    2: ("OUT_OF_MEMORY",
        "The device has not as much free memory in one piece as was asked for. It is not sticky: a smaller "
        "request works, but cudaGetLastError keeps saying 2 until it is read once.",
        "nvidia-smi shows who holds memory. Compare the request with cudaMemGetInfo, and compute sizes in size_t: "
        "an int that overflows asks for 16 EiB. Then use less, or free earlier.", "The driver and the toolkit."),
    3: ("FORK_AFTER_INIT",
        "CUDA could not start in this process. The usual reason is a fork after the parent had touched CUDA (even "
        "a device count is enough): a child cannot inherit it.",
        "Fork before the first CUDA call. In Python: multiprocessing.set_start_method('spawn').",
        "The driver and the toolkit."),
    4: ("PROCESS_IS_ENDING", "A CUDA call came while the process was already shutting CUDA down, often from a global "
        "destructor.", "Free CUDA objects before main returns.", ""),
    9: ("INVALID_LAUNCH",
        "The launch shape is impossible: more than 1024 threads a block, a dimension of 0, grid.y or grid.z over "
        "65535, block.z over 64. Newer toolkits report 1 for it.",
        "Print grid and block before the launch and compare them with the device's limits.", ""),
    13: ("INVALID_SYMBOL", "cudaMemcpyToSymbol needs a __device__ or __constant__ variable; it got a host variable or "
         "a name in quotes.", "Pass the variable itself: cudaMemcpyToSymbol(table, ...).", ""),
    21: ("INVALID_COPY_DIRECTION", "The last argument of cudaMemcpy is none of the directions.",
         "Use cudaMemcpyDefault or check the order of the arguments.", ""),
    34: ("STUB_LIBRARY",
         "The stub libcuda.so, made only for linking, was loaded at run time: a .../lib64/stubs folder is on "
         "LD_LIBRARY_PATH (or in the linker cache).",
         "Remove it from LD_LIBRARY_PATH; it belongs into LIBRARY_PATH or behind -L. Check: echo $LD_LIBRARY_PATH",
         "The driver and the toolkit; nothing needs to be installed."),
    35: ("DRIVER_TOO_OLD",
         "Either there is no driver at all (no libcuda.so.1: a container without GPU access, a machine without a "
         "driver), or the driver is older than the program's CUDA version. The text speaks only of the second.",
         "nvidia-smi: if it fails, the driver is missing (container: docker run --gpus all; WSL: install the "
         "Windows driver only). If it works, compare its CUDA Version with the toolkit's.",
         "The program; it need not be changed."),
    36: ("DRIVER_TOO_OLD", "The program calls a function that this driver does not have yet.",
         "Update the driver, or avoid the new function.", ""),
    46: ("EXCLUSIVE_PROCESS",
         "The GPU is there and refuses a new context: it is in compute mode Exclusive Process and another process "
         "has it, or it hangs after a fault, or this process had a sticky error and called cudaDeviceReset.",
         "nvidia-smi -q -d COMPUTE | grep Mode; nvidia-smi shows the other process. Start a new process.",
         "The driver and the toolkit."),
    98: ("BUILD_LACKS_ARCH", _NO_IMAGE + " 98 is another face of 209. It also comes when two shared libraries carry "
         "the same template kernel.",
         "scripts/inspect FILE shows what is inside. Rebuild for this GPU, e.g. make SMS=86.", "The driver."),
    100: ("NO_DEVICE_VISIBLE",
          "The driver library is there but shows no GPU: CUDA_VISIBLE_DEVICES is empty or names a GPU that does not "
          "exist (a bad entry hides all that follow), the kernel module is not loaded, or the job has no GPU.",
          "echo \"[$CUDA_VISIBLE_DEVICES]\"; then unset CUDA_VISIBLE_DEVICES and try again. nvidia-smi -L lists the GPUs.",
          "The toolkit and the program."),
    101: ("INVALID_DEVICE_NUMBER", "The program asked for a GPU number that does not exist (or CUDA_VISIBLE_DEVICES "
          "names one GPU twice). Numbers start at 0 and count visible GPUs only.",
          "nvidia-smi -L; then use a smaller --device.", ""),
    200: ("DAMAGED_KERNEL_IMAGE", "The GPU code in the file cannot be read: it is damaged, cut off, or no GPU code.",
          "Rebuild from clean. scripts/inspect FILE says whether the file can be read.", ""),
    209: ("BUILD_LACKS_ARCH", _NO_IMAGE,
          "scripts/inspect FILE shows what is inside; check_env shows your GPU. Rebuild for it, e.g. make SMS=86 "
          "or nvcc -gencode arch=compute_86,code=sm_86. A PyTorch wheel: install one whose list has your GPU.",
          "The driver; a newer one does not help."),
    214: ("ECC_ERROR", "The GPU found a memory fault that it could not correct: hardware.",
          "nvidia-smi -q -d ECC,ROW_REMAPPER; if a row remapping is pending, the GPU must be reset or the machine "
          "rebooted. Tell the administrator if it comes back.", "The program and the toolkit."),
    217: ("NO_PEER_ACCESS", "These two GPUs cannot read each other's memory.",
          "nvidia-smi topo -p2p r shows which can. Copies between them still work, through the host.", ""),
    218: ("PTX_JIT_FAILED",
          "The driver's compiler rejected the PTX: made for a newer GPU than this one, or not valid.",
          "scripts/inspect FILE shows the PTX target; build for this GPU. Hand-made PTX: ptxas -arch=sm_86 "
          "file.ptx prints the line.", "The driver, as long as the target is not newer than the GPU."),
    221: ("JIT_LIB_MISSING",
          "The file has only PTX for this GPU, and the driver's compiler libnvidia-ptxjitcompiler.so.1 is not "
          "installed or not found (slim containers, Jetson images).",
          "ldconfig -p | grep ptxjitcompiler; install the driver's complete package, or in a container set "
          "NVIDIA_DRIVER_CAPABILITIES=compute,utility. Or build machine code for the GPU: no compiler is needed then.",
          "The toolkit and the source."),
    222: ("DRIVER_TOO_OLD_FOR_PTX",
          "The file has no machine code for this GPU, and its PTX was written by a toolkit that is newer than the "
          "driver, which can compile only PTX up to its own CUDA version.",
          "Build machine code for your GPU (make SMS=86; nvcc -gencode arch=compute_86,code=sm_86), or update the "
          "driver. scripts/inspect FILE shows the PTX version.", "The source; PyTorch need not be downgraded."),
    223: ("JIT_DISABLED", "The file has only PTX for this GPU, and compiling it was forbidden by "
          "CUDA_DISABLE_PTX_JIT=1.", "unset CUDA_DISABLE_PTX_JIT, or build machine code for the GPU.", "The driver."),
    300: ("DAMAGED_KERNEL_IMAGE", "The GPU code in the file cannot be read; the text is that of 200.",
          "Rebuild from clean.", ""),
    304: ("OS_CALL_FAILED", "A call of the driver to the operating system failed. On servers with NVSwitch it stands "
          "beside 802; in containers a device node or a permission is missing.",
          "sudo dmesg | grep -i nvrm; ls -l /dev/nvidia*", ""),
    400: ("INVALID_HANDLE", "A stream, event or handle is not valid here: never created or recorded, destroyed, or of "
          "another device.", "Check the handle's life; record an event before asking for its time.", ""),
    500: ("SYMBOL_NOT_FOUND", "A kernel or variable was looked up by a name that the module does not have, usually "
          "the plain name where the compiler stored the C++ one.",
          "Declare it extern \"C\", or use the name that cuobjdump -symbols or scripts/inspect prints.", ""),
    600: ("NOT_READY", "No fault: work that was asked about has not finished yet (cudaEventQuery, cudaStreamQuery, "
          "or the time between events that are still pending).",
          "Synchronise before asking for the result.", ""),
    700: ("KERNEL_BAD_ADDRESS",
          "A kernel used an address that is not its own: null, a host pointer, far outside of an array, a stack that "
          "overflowed. " + _STICKY + " One element past the end usually raises nothing at all.", _FIND,
          "The driver and the toolkit."),
    701: ("TOO_MANY_REGISTERS", "Registers of a thread times threads of the block is more than the 65536 of an SM. "
          "Debug builds (-G) raise it.",
          "A smaller block, __launch_bounds__(threads), or -maxrregcount. scripts/inspect FILE prints registers.", ""),
    702: ("TDR_TIMEOUT",
          "A kernel ran longer than the display's watchdog allows: about 2 seconds on Windows, a few on a Linux "
          "desktop. Windows may report 999 instead, with a black screen for a second.",
          "Split the work into shorter launches, or use a GPU without a display.", "The toolkit."),
    710: ("DEVICE_ASSERT", "An assert in a kernel failed; its line is on stderr. In PyTorch it is mostly an index or "
          "label out of range. " + _STICKY, "Read the assert's line. In PyTorch run the same on the CPU, or with "
          "CUDA_LAUNCH_BLOCKING=1.", "The driver and the toolkit."),
    714: ("STACK_OVERFLOW", "The hardware found a damaged call stack, e.g. from deep recursion. " + _STICKY,
          "Raise cudaLimitStackSize with cudaDeviceSetLimit, or avoid the recursion.", ""),
    715: ("KERNEL_BAD_INSTRUCTION", "A kernel reached an instruction that cannot run, often after memory or the stack "
          "was overwritten. " + _STICKY, _FIND, ""),
    716: ("KERNEL_MISALIGNED", "A kernel read or wrote a value at an address that is no multiple of its size, e.g. a "
          "float4 at an address not divisible by 16. " + _STICKY, _FIND, "The driver and the toolkit."),
    718: ("KERNEL_BAD_PC", "A kernel jumped to an address without code: a wrong function pointer. " + _STICKY, _FIND, ""),
    719: ("KERNEL_FAILED", "A kernel ended with a fault that has no number of its own: a trap, a bad shared-memory "
          "address, rarely the hardware or a driver that slept badly. " + _STICKY,
          _FIND + " If the sanitizer is content: sudo dmesg | grep Xid", "The toolkit."),
    720: ("COOPERATIVE_TOO_LARGE", "A cooperative launch needs all blocks on the GPU at once, and they do not fit.",
          "At most cudaOccupancyMaxActiveBlocksPerMultiprocessor times the number of SMs.", ""),
    800: ("NOT_PERMITTED", "The driver forbids it to this user. For profilers: performance counters are for "
          "administrators only.", "See scripts/profile, or run without the profiler.", ""),
    801: ("NOT_SUPPORTED", "This GPU, driver or system cannot do it, e.g. managed memory features on WSL.",
          "Ask the device attribute before using the feature.", ""),
    802: ("FABRIC_MANAGER",
          "A server whose GPUs are joined by NVSwitch (HGX A100, H100, H200, B200): its fabric manager is not ready, "
          "also when only one GPU is used.",
          "On the host: systemctl status nvidia-fabricmanager (its version must equal the driver's); "
          "nvidia-smi -q | grep -A2 Fabric. It cannot be cured inside a container.", "The program, toolkit and container."),
    803: ("COMPAT_LIB_SHADOWS_DRIVER",
          "The user library libcuda and the kernel module do not belong together: a cuda-compat folder comes before "
          "the driver's own library, or the driver was updated and the old module is still loaded.",
          "ldconfig -p | grep libcuda; cat /proc/driver/nvidia/version; take .../compat off LD_LIBRARY_PATH. After an "
          "update: reboot.", "The toolkit and the program."),
    804: ("COMPAT_LIB_ON_GEFORCE",
          "A forward-compatibility libcuda (package cuda-compat) was loaded; it works on data-centre GPUs only, "
          "not on GeForce.",
          "Take .../compat off LD_LIBRARY_PATH (and out of /etc/ld.so.conf.d in the container), or update the host's "
          "driver, or use an image for the driver's CUDA version.", "The program and the toolkit."),
    900: ("STREAM_CAPTURE", "A call that is not allowed while a stream is captured into a graph (cudaMalloc, a "
          "synchronise).", "Allocate before the capture; use cudaMallocAsync inside.", ""),
    901: ("STREAM_CAPTURE", "An earlier call broke the capture; that one is the culprit.",
          "Check every call between begin and end of the capture.", ""),
    999: ("CUDA_UNKNOWN_ERROR",
          "The driver failed in a way it has no number for. Mostly nvidia_uvm is missing or broken, e.g. after "
          "suspend, or /dev/nvidia-uvm is missing in a container.",
          "ls -l /dev/nvidia-uvm; close CUDA programs, then: sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm. "
          "Otherwise reboot; sudo dmesg | grep -iE 'nvrm|xid'", "The toolkit and the program."),
}


class Message:
    """A message that is not a CUDA error number: how to recognise it and what to say."""

    def __init__(self, code, pattern, means, do, keep="", weak=False):
        self.code, self.means, self.do, self.keep, self.weak = code, means, do, keep, weak
        self.pattern = re.compile(pattern, re.IGNORECASE)


# The first that matches counts, so the special ones stand before the general ones. weak: only if nothing else matches.
MESSAGES = [
    # --- nvcc and ptxas
    Message("CMAKE_TOO_OLD_FOR_NATIVE", r"compute_native|compute_'|CUDA_ARCHITECTURES is (set to|empty).*native|"
            r"CMAKE_CUDA_ARCHITECTURES must be (non-empty|valid)",
            "CMake passed 'native' or nothing as the architecture: 'native' needs CMake 3.24 or newer and a GPU at "
            "configure time.", "cmake -DCMAKE_CUDA_ARCHITECTURES=86 (your GPU's number) in a new build folder.",
            "The toolkit."),
    Message("TOOLKIT_TOO_OLD", r"Unsupported gpu architecture|is not (defined|a valid value) for option "
            r"'?-?-?(gpu-)?(architecture|code)|Unknown CUDA arch|invalid value for --gpu-architecture",
            "This nvcc does not know that architecture: too old for a new GPU, or so new that it has dropped an old one.",
            "nvcc --version and nvcc --list-gpu-arch; use the toolkit that knows it (sm_120: 12.8 or newer; sm_89 and "
            "sm_90: 11.8 or newer; sm_50 to sm_72: 12.9 or older). check_env lists every nvcc here.",
            "The driver: nvidia-smi's CUDA Version is not the compiler's."),
    Message("INCOMPATIBLE_GENCODE", r"Incompatible code generation requested", "In -gencode arch=compute_X,code=sm_Y the "
            "virtual architecture X may not be newer than Y.", "-gencode arch=compute_80,code=sm_80", ""),
    Message("NO_GPU_FOR_NATIVE", r"Cannot find valid GPU for '-arch=native'", "-arch=native looks for a GPU, found none, "
            "and fell back to the compiler's default architecture. The build succeeded for the wrong GPU.",
            "Name it: -arch=sm_86.", ""),
    Message("ARCH_SPECIFIC_PTX", r"setmaxnreg|wgmma\S*' not supported|not supported on \.target 'sm_\d+'|tcgen05\S*' not|"
            r"requires? \.target sm_\d+a|needs sm_\d+a|feature .{1,60} not supported on .target",
            "The source uses instructions of one architecture only (sm_90a, sm_100a), and it is being compiled for the "
            "general one too: nvcc -arch=sm_90a also makes generic compute_90 PTX.",
            "-gencode arch=compute_90a,code=sm_90a instead of -arch=sm_90a, or guard the code with "
            "#if defined(__CUDA_ARCH_FEAT_SM90_ALL).", "The toolkit and the driver."),
    Message("HOST_GCC_TOO_NEW", r"unsupported GNU version|gcc versions later than|__builtin_ia32_\w+\"? is undefined|"
            r"parameter packs not expanded with|_Float(16|32|64|128)x?\"? is undefined",
            "nvcc's headers refuse a gcc that is newer than they know.",
            "Install an older one and name it: nvcc -ccbin g++-12 (or export NVCC_CCBIN=g++-12). The limit: grep "
            "'__GNUC__ >' $CUDA_HOME/include/crt/host_config.h", "The driver. -allow-unsupported-compiler mostly only "
            "changes the error."),
    Message("HOST_COMPILER_UNSUPPORTED", r"unsupported (clang|Microsoft Visual Studio|ICC|PGI) version",
            "nvcc's headers refuse this host compiler's version.", "Use one of the toolkit's list, with -ccbin.", ""),
    Message("HOST_COMPILER_MISSING", r"Failed to preprocess host compiler properties|gcc(-\d+)?: (No such file|command not "
            r"found|not found)|cc1plus.*(No such file|not found)|Cannot find compiler 'cl\.exe'|g\+\+(-\d+)?: (No such file|"
            r"command not found|not found)|could not find.*host compiler",
            "nvcc needs a C++ compiler and did not find it.", "sudo apt install g++ (or the distribution's package), or "
            "name the one you have: -ccbin g++-12", ""),
    Message("GLIBC_HEADER_CLASH", r"exception specification is incompatible",
            "glibc and the CUDA headers declare the same function differently (cospi, sinpi since glibc 2.41; rsqrt since "
            "2.42). gcc is not at fault: another gcc meets the same headers.",
            "Use a newer toolkit (sinpi, cospi: 13.0; rsqrt: 13.2), or build in a container or distribution with an older "
            "glibc. ldd --version shows yours.", "gcc and the driver."),
    Message("NVCC_NOT_ON_PATH", r"\bnvcc'?:? (command not found|not found)|nvcc.{0,30}No such file or directory|No CMAKE_CUDA_COMPILER "
            r"could be found|Failed to find nvcc|CUDA_HOME environment variable is not set",
            "The compiler nvcc was not found. The driver does not contain it; the toolkit may be installed outside of PATH.",
            "ls /usr/local/cuda*/bin/nvcc; then export PATH=/usr/local/cuda/bin:$PATH. On a cluster: module load cuda.",
            "The driver."),
    Message("NOT_A_CU_FILE", r"expected (primary-)?expression before '<' token|'__global__' does not name a type|"
            r"unknown type name '__global__'", "A C or C++ compiler met <<< or __global__: the file ends in .c or .cpp, and "
            "nvcc passes those on.", "Rename it to .cu, or nvcc -x cu file.cpp", ""),
    Message("DEVICE_LINK_MISSING", r"Unresolved extern function|__cudaRegisterLinkedBinary|undefined reference to "
            r"[`'\"]?__fatbinwrap", "A kernel calls a device function of another file; that needs relocatable device code and "
            "a device link.", "nvcc -rdc=true for all files, and let nvcc link (or nvcc -dlink).", ""),
    Message("LINKED_WITHOUT_CUDART", r"undefined reference to [`'\"]?(__)?cuda[A-Z]\w+|cannot find -lcud\w+|"
            r"undefined reference to [`'\"]?cu[A-Z]\w+", "The program was linked without the CUDA runtime, or the library "
            "stands before the objects.", "Link with nvcc, or g++ a.o b.o -L/usr/local/cuda/lib64 -lcudart (objects first).", ""),
    Message("LINKED_WITHOUT_CUDART", r"undefined reference to [`'\"]?__gxx_personality_v0", "C++ objects were linked with gcc.",
            "Link with nvcc or g++.", ""),
    Message("HOST_FUNCTION_IN_KERNEL", r"calling a __host__ function", "A kernel calls a function that exists only for the CPU "
            "(std::vector, your own helper).", "Mark the helper __device__, and use plain arrays in kernels.", ""),
    Message("TOO_MUCH_SHARED_MEMORY", r"uses too much shared data", "Static shared memory is limited to 48 KiB a block.",
            "Use dynamic shared memory with cudaFuncSetAttribute(..., cudaFuncAttributeMaxDynamicSharedMemorySize, bytes).", ""),
    Message("TOO_MUCH_CONSTANT_MEMORY", r"uses too much global constant data", "__constant__ memory is limited to 64 KiB.",
            "Put the table into global memory.", ""),
    Message("DEVICE_ARRAY_TOO_BIG", r"failed to convert GOTPCREL relocation|relocation truncated to fit", "A static __device__ "
            "array of about 2 GiB or more: nvcc makes a host shadow of the same size, and the linker gives up.",
            "cudaMalloc it instead.", ""),
    Message("GONE_IN_CUDA_13", r"no member named '(clockRate|kernelExecTimeoutEnabled|computeMode|memoryClockRate)|has no member \""
            r"(clockRate|memoryClockRate|computeMode|kernelExecTimeoutEnabled)|struct cudaDeviceProp.? has no member|"
            r"texture is not a template|cudaThreadSynchronize.{0,30}undefined|\"?cudaThreadSynchronize",
            "CUDA 13 removed this (12 the textures).", "cudaDeviceGetAttribute, texture objects, cudaDeviceSynchronize.", ""),
    Message("UNKNOWN_NVCC_OPTION", r"nvcc fatal\s*: Unknown option", "nvcc does not take gcc's options directly.",
            "-Xcompiler -Wall", ""),
    # --- the driver and the container tools
    Message("DRIVER_MODULE_MISMATCH", r"Driver/library version mismatch|API mismatch",
            "The driver's files were updated, and the old kernel module is still loaded.",
            "Reboot. Without a reboot: close everything that uses the GPU, then sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset "
            "nvidia && sudo modprobe nvidia", "The toolkit, PyTorch and the program."),
    Message("SECURE_BOOT_BLOCKS_MODULE", r"Key was rejected by service|Required key not available|module verification failed.{0,40}nvidia|"
            r"Loading of unsigned module is rejected|Lockdown:.{0,60}unsigned module",
            "Secure Boot refuses to load the unsigned NVIDIA module.",
            "mokutil --sb-state; enrol the key (sudo mokutil --import ... and reboot) or install the distribution's signed "
            "driver package, or turn Secure Boot off.", "The toolkit; reinstalling the same driver does not help."),
    Message("PCI_BAR_TOO_SMALL", r"PCI I/O region .{0,40} is invalid|BAR\d? is 0M|BAR\d? .{0,60}(not assigned|no space|can't assign)|"
            r"can't (assign|find) .{0,20}BAR|resizable BAR|Above 4G", "The firmware gave the GPU no address window, so the driver cannot "
            "use it.", "In the BIOS: enable 'Above 4G decoding' (and Resizable BAR); in a VM: a larger MMIO window. Then see "
            "sudo dmesg | grep -i nvrm", "The toolkit and the driver."),
    Message("DRIVER_DROPPED_GPU", r"supported through the NVIDIA \d+\.xx Legacy|NVRM: No NVIDIA GPU found|legacy drivers?\b.{0,80}NVRM|"
            r"ignoring the legacy GPU",
            "This driver branch no longer supports the card: from 590 on it needs compute capability 7.5 or newer; Maxwell, "
            "Pascal and Volta end with 580.", "Install the 580 branch, e.g. sudo apt install nvidia-driver-580", "The hardware is not broken."),
    Message("CHECK_OPEN_MODULES", r"requires? use of the NVIDIA open kernel modules|RmInitAdapter failed|No devices were found",
            "The kernel module is loaded and cannot use any GPU. GPUs from Blackwell on work only with the open kernel modules.",
            "modinfo -F license nvidia (must say MIT/GPL for the open one); sudo dmesg | grep -iE 'nvrm|RmInit'", "The toolkit."),
    Message("NO_KERNEL_DRIVER", r"couldn.?t communicate with the NVIDIA driver|nvidia-smi'?:? (command )?not found|modprobe.{0,40}nvidia.{0,20} "
            r"not found|/proc/driver/nvidia/version.{0,20}(does not exist|No such)|Can't find the NVIDIA kernel module|"
            r"Found no NVIDIA driver",
            "The NVIDIA kernel module is not loaded: not installed, not built for this kernel, or refused by Secure Boot.",
            "lsmod | grep nvidia; mokutil --sb-state; sudo dmesg | grep -iE 'nvidia|nouveau'; then install the driver for this kernel.",
            "The toolkit and the program."),
    Message("CONTAINER_WITHOUT_GPU", r"could not select device driver .{0,20}capabilities|nvidia-container-cli: initialization error|"
            r"unknown (runtime specified|or invalid runtime name:?) nvidia|failed to discover GPU vendor|unresolvable CDI devices|"
            r"The NVIDIA Driver was not detected",
            "The container has no access to the GPU.", "On the host: install nvidia-container-toolkit, sudo nvidia-ctk runtime configure "
            "--runtime=docker && sudo systemctl restart docker, then docker run --gpus all ...", "The image and the program."),
    Message("DRIVER_TOO_OLD", r"unsatisfied condition: (cuda|driver)|driver on your system is too old|driver too old", "The host's driver is older than the program or image needs.",
            "Update the driver, or take a PyTorch wheel or an image for the driver's CUDA version.", "The source."),
    Message("JIT_LIB_MISSING", r"libnvidia-ptxjitcompiler", EXPLAIN[221][1], EXPLAIN[221][2], EXPLAIN[221][3]),
    Message("WSL_LIBCUDA_NOT_SYMLINK", r"libcuda\.so\.1 is not a symbolic link", "Harmless: WSL ships libcuda as plain files, and "
            "ldconfig remarks on it.", "Nothing to do.", "Never install a Linux driver inside WSL."),
    Message("WSL_NO_ADAPTER", r"WSL environment detected but no adapters", "WSL sees no GPU of the Windows host.",
            "Update the Windows driver, then wsl --update and wsl --shutdown in Windows.", "Do not install a Linux driver in WSL."),
    Message("NO_LIBCUDA", r"libcuda\.so(\.1)?['\"]?:? .{0,30}cannot open|(Could not|cannot|Unable to) (load|open|find).{0,40}libcuda\b|libcuda\.so "
            r"cannot be found|CUDA driver library cannot be found",
            "The driver's library is not there: no driver, or a container without GPU access.",
            "Container: docker run --gpus all. WSL: install the Windows driver. Otherwise install the NVIDIA driver. It is not part "
            "of the toolkit.", "The program and the toolkit."),
    Message("RUNTIME_LIB_MISSING", r"lib(cudart|cublas|cublasLt|cudnn\w*|cufft|curand|cusparse|cusolver|nvrtc|nvJitLink|nccl|cupti)\S*?"
            r"\.so[\d.]*['\"]?:? .{0,30}(cannot open|No such|not found)|(Could not|cannot|Unable to) (load|find).{0,60}lib(cu|nv)\w+\.so",
            "A library of the toolkit is missing; the number behind .so names the major version that the program was built with.",
            "Install that version or put its folder on LD_LIBRARY_PATH: find / -name 'libcudart.so*' 2>/dev/null", "The driver. Never "
            "link another major version to that name."),
    Message("UVM_HMM_KASLR", r"uvm_pmm_gpu\.c|uvm_disable_hmm", "The driver's memory module clashes with the kernel's address "
            "randomisation (heterogeneous memory management).", "echo 'options nvidia_uvm uvm_disable_hmm=1' | sudo tee "
            "/etc/modprobe.d/uvm.conf, then reboot (or boot with nokaslr).", "The toolkit and the fabric manager."),
    Message("MPS_SERVER", r"MPS (client|server|control)", "The process wants to use the MPS service, which is not there or is full.",
            "Ask who runs it: echo get_server_list | nvidia-cuda-mps-control; or unset CUDA_MPS_PIPE_DIRECTORY.", ""),
    # --- PyTorch, numba
    Message("WHEEL_LACKS_ARCH", r"sm_\d+\w* is not compatible with the current PyTorch|is not compatible with the current PyTorch "
            r"installation|not compatible with the (minimum|maximum|min|max).{0,40}cuda capability",
            "This PyTorch wheel has no code for the GPU.",
            "python -c 'import torch; print(torch.__version__, torch.cuda.get_arch_list())'; install a wheel whose list fits "
            "(RTX 50: cu128 or newer).", "The driver and the system's toolkit: the wheel brings its own."),
    Message("GPU_TOO_OLD_FOR_WHEEL", r"no longer supports this GPU because it is too old|minimum cuda capability supported",
            "The wheel's oldest architecture is newer than the GPU, and PTX never goes back to older GPUs.",
            "Install a wheel that still has it (Maxwell, Pascal: cu126): pip install torch --index-url "
            "https://download.pytorch.org/whl/cu126", "The driver and the toolkit."),
    Message("TORCH_TOOLKIT_MAJOR_MISMATCH", r"detected CUDA version.{0,40}mismatches",
            "The nvcc that was found and the CUDA version that PyTorch was built with differ in the major number; extensions would "
            "mix two runtimes.", "Use the toolkit of PyTorch's major version: export CUDA_HOME=/usr/local/cuda-12.x, or install the "
            "PyTorch wheel of the toolkit's.", "The driver. Editing the check away only moves the failure to the link."),
    Message("TORCH_CPU_WHEEL", r"Torch not compiled with CUDA enabled", "The PyTorch here was built for the CPU only.",
            "pip uninstall torch; pip install torch --index-url https://download.pytorch.org/whl/cu126 (or the tag for your GPU).",
            "The driver and the toolkit."),
    Message("FORK_AFTER_INIT", r"Cannot re-initialize CUDA in forked subprocess", EXPLAIN[3][1],
            EXPLAIN[3][2], EXPLAIN[3][3]),
    Message("MIG", r"device >= 0 && device < num_gpus INTERNAL ASSERT|MIG.{0,40}(mode|instance|device).{0,40}(not|fail|no )",
            "The GPU is divided (MIG): a process sees one slice, while other tools count several.",
            "nvidia-smi -L; export CUDA_VISIBLE_DEVICES=MIG-<uuid>", "The driver, PyTorch and the toolkit."),
    Message("UVM_BROKEN_AFTER_SUSPEND", r"CUDA unknown error|incorrectly set up environment", EXPLAIN[999][1],
            EXPLAIN[999][2], "CUDA_VISIBLE_DEVICES, which the message speaks of, and the toolkit."),
    Message("OOM_FRAGMENTATION", r"reserved (by PyTorch )?but unallocated( memory)? is large|reserved memory is >> allocated",
            "Enough memory is free in total, not in one piece: PyTorch's allocator holds it in fragments.",
            "export PYTORCH_ALLOC_CONF=expandable_segments:True (older PyTorch: PYTORCH_CUDA_ALLOC_CONF)", "The driver."),
    # --- symptoms without a number
    Message("CONCURRENT_MANAGED_ACCESS=0", r"(segfault|segmentation fault|signal 11|SIGSEGV|SIGBUS|bus error)(?=[\s\S]*managed)|"
            r"managed[\s\S]*(segfault|segmentation fault|signal 11|SIGSEGV|SIGBUS|bus error)",
            "The CPU touched managed memory while a kernel was running. Where the device attribute concurrentManagedAccess is 0 "
            "(Windows, WSL, some laptops) that is a segmentation fault.", "cudaDeviceSynchronize before the CPU reads or writes; or "
            "cudaMalloc and cudaMemcpy.", "The driver and the toolkit."),
    Message("WSL_PAGES_TO_HOST", r"(no error|succeeds|very slow|slow).{0,80}(exceed|more than|beyond|over).{0,30}(VRAM|GPU memory)|"
            r"shared GPU memory|sysmem fallback", "On Windows and WSL the driver moves data to the computer's memory instead of "
            "failing; it becomes very slow.", "Use less than cudaMemGetInfo calls free; NVIDIA Control Panel: CUDA - Sysmem Fallback "
            "Policy.", "The toolkit."),
    Message("UINT32_INDEX_OVERFLOW", r"int64_t\s+\w+\s*=\s*blockIdx|size_t\s+\w+\s*=\s*blockIdx\.\w\s*\*\s*blockDim",
            "blockIdx.x * blockDim.x is a product of 32-bit numbers and overflows before it is widened.",
            "size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;", "Driver and toolkit."),
    Message("HOST_SEGFAULT", r"segfault|segmentation fault|signal 11\b|SIGSEGV",
            "The CPU part of the program used an address that is not its own: a device pointer used on the host, a destroyed stream, "
            "or managed memory touched while a kernel runs (WSL, Windows).", "gdb -ex run -ex bt ./prog shows the line.", "The driver.",
            weak=True),
    Message("XID", r"NVRM: Xid|\bXid\b.{0,20}\d+", "The driver logged a GPU fault (Xid). 13, 31, 43: a program's bad access; 48, 63, 64, 94, "
            "95: memory hardware; 79: the GPU fell off the bus.", "compute-sanitizer ./prog for 13 and 31; otherwise nvidia-smi -q -d ECC, "
            "and the administrator.", "", weak=True),
]


def explanation(number):
    """code, meaning, remedy and what to keep of a CUDA error; None where the table has only name and text."""
    return EXPLAIN.get(number)


def normal(text):
    """One space between words, quotes of one kind: how texts are compared."""
    return re.sub(r"\s+", " ", str(text).replace("\u2018", "'").replace("\u2019", "'").replace("`", "'")).strip()


def cuda_hits(text):
    """(position, number, old) of every CUDA error that the text names by name, text or number."""
    hits, whole, lower = [], normal(text), text.lower()
    if re.match(r"^(0x)?\d+$", whole):
        number = int(whole, 0) if whole.startswith("0x") else int(whole)
        if number in TABLE:
            hits.append((0, number, None))
        if number in OLD_NUMBERS:
            hits.append((0, OLD_NUMBERS[number], number))
        return hits
    names = {name.lower(): number for number, (name, _) in TABLE.items()}
    names.update({name.lower(): number for name, number in DRIVER_NAMES.items()})
    for match in re.finditer(r"\bcudaError\w+|\b(CUDA_)?ERROR_[A-Z_]+|\bCUDA_ERROR_\w+", text, re.IGNORECASE):
        if match.group(0).lower() in names:
            hits.append((match.start(), names[match.group(0).lower()], None))
    texts = [(number, entry[1]) for number, entry in TABLE.items()] + OTHER_TEXTS
    for number, wanted in texts:
        pattern = r"(?<!\w)" + r"\s+".join(re.escape(word) for word in wanted.rstrip(".").split()) + r"(?!\w)"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            start = lower.rfind("\n", 0, match.start()) + 1
            end = lower.find("\n", match.end())
            line = lower[start:end if end >= 0 else len(lower)]
            # Texts of one table are contained in texts of another line ("invalid argument"): those need context.
            if number in GENERIC and whole.lower().rstrip(".") != wanted.lower().rstrip(".") and not re.search(
                    r"cuda|gpu|nvidia|kernel|launch|torch", line):
                continue
            hits.append((match.start(), number, None))
            break
    number_pattern = (r"(?:cuda[\w ]{0,24}?(?:error|failure|fail(?:ed)? with error|code)|(?:^|\W)(?:error|err)(?: code| number)?|"
                      r"error code|code|cudaError(?:_t)?|CUresult|returned|status)\s*(?:[:=#(]|is|was)?\s*\(?(\d{1,3})\b(?![.\d])")
    for match in re.finditer(number_pattern, text, re.IGNORECASE):
        number = int(match.group(1))
        start, end = lower.rfind("\n", 0, match.start() + 1) + 1, lower.find("\n", match.end())
        line = lower[start:end if end >= 0 else len(lower)]
        alone = re.match(r"^(error|err|code)( code| number)?[ :=#]*\d+$", whole, re.IGNORECASE)
        if not re.search(r"cud|gpu|nvidia|kernel|launch|culaunch|cuinit|cumem|cumodule", line) and not alone:
            continue  # make and the shell speak of errors with numbers, too
        if number in TABLE and number not in (4, 6, 7, 8):  # of these four, the meaning before 10.1 is the likely one
            hits.append((match.start(), number, None))
        elif number in OLD_NUMBERS:
            hits.append((match.start(), OLD_NUMBERS[number], number))
    for match in re.finditer(r"\((\d{1,3}) vs\. 0\)", text):  # the check macro of Caffe and others
        number = int(match.group(1))
        if number in TABLE or number in OLD_NUMBERS:
            old = None if number in TABLE and number not in (4, 6, 7, 8) else number
            hits.append((match.start(), OLD_NUMBERS[number] if old else number, old))
    return sorted(hits, key=lambda hit: hit[0])


def recognise(text):
    """What the text is about, the most telling first: dicts with number or None, code, means, do, keep, quote."""
    text = str(text)[:200000]
    found, seen = [], set()

    def add(code, number, old, means, do, keep, quote):
        if (code, number) not in seen:
            seen.add((code, number))
            found.append({"code": code, "number": number, "old_number": old, "means": means, "do": do, "keep": keep,
                          "name": TABLE[number][0] if number else None, "text": TABLE[number][1] if number else None,
                          "quote": quote})

    def add_messages(weak):
        for message in MESSAGES:
            match = message.pattern.search(text) if message.weak == weak else None
            if match:
                add(message.code, None, None, message.means, message.do, message.keep, line_at(text, match.start()))

    if not re.match(r"^\s*\d+\s*$", text):
        add_messages(weak=False)
    for position, number, old in cuda_hits(text):
        code, means, do, keep = EXPLAIN.get(number, ("CUDA_ERROR_%d" % number, "", "", ""))
        if number in [f["number"] for f in found]:
            continue
        add(code, number, old, means, do, keep, line_at(text, position))
    if not found:
        add_messages(weak=True)
    return found


def line_at(text, position):
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = normal(text[start:end if end >= 0 else len(text)])
    return line if len(line) <= 160 else line[:157] + "..."

"""Lesson 07: the operator against PyTorch's own threshold, on every device, and the ways to build it.

Needs a Python with PyTorch (make torch PYTHON=...). Without one all of it is skipped in one line;
nothing is downloaded.
"""

import re
import shutil
import sys
import threading

import pytest

from conftest import BUILD_DIR, ROOT, make, need, needs_nvcc, run_command

torch = pytest.importorskip("torch", reason=(
    f"PyTorch is not installed for {sys.executable}: the operator of lesson 07 is not tested here "
    "(make torch PYTHON=... tests it with another Python)"))

LESSON = ROOT / "07_pytorch_extension"
FOLDER = BUILD_DIR / "torch"
HAS_GPU = torch.cuda.is_available()
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="PyTorch sees no GPU")
DEVICES = ["cpu"] + (["cuda"] if HAS_GPU else [])
DTYPES = ["float32", "float64", "float16", "bfloat16"]


def python(*arguments, env=None, cwd=LESSON, timeout=600):
    return run_command([sys.executable, *arguments], env=env, cwd=cwd, timeout=timeout)


# ---- the operator


def build(backend, name, **env):
    """pip install into a folder of its own, as a user would; returns it."""
    target = FOLDER / name
    shutil.rmtree(target, ignore_errors=True)
    source = FOLDER / f"{name}.source"  # pip builds in the source folder: not in the tree itself
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(LESSON, source, ignore=shutil.ignore_patterns("build", "*.so", "*.egg-info"))
    result = python("-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps",
                    "--no-index", "--disable-pip-version-check", "--target", target, ".",
                    env={"BACKEND": backend, "SMS": "", "TORCH_CUDA_ARCH_LIST": "", **env},
                    cwd=source)
    assert result.code == 0, result
    return target


@pytest.fixture(scope="module")
def package():
    """The installed package's functions, for the devices that this machine has."""
    sys.path.insert(0, str(build("" if HAS_GPU else "cpu", "here")))
    import threshold_relu
    return threshold_relu


def expected(x, threshold, source=None):
    """By definition, the threshold rounded to the type: 0 where x <= threshold, else the source (x)."""
    limit = torch.tensor(threshold, dtype=torch.float64).to(x.dtype).double()
    source = (x if source is None else source).cpu()
    return torch.where(x.cpu().double() <= limit, torch.zeros_like(source), source)


def same_bits(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    a, b = (t.detach().cpu().contiguous().reshape(-1) for t in (a, b))
    assert torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def sample(n, dtype, device, seed=0):
    """Numbers, with the special ones among them."""
    x = torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    nan, inf = float("nan"), float("inf")
    special = torch.tensor([nan, -nan, inf, -inf, 0.0, -0.0, 0.25, -0.25], dtype=torch.float64)
    x[:n // 5 * 5:5] = special.repeat(n // 40 + 1)[:n // 5]
    return x.to(getattr(torch, dtype)).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threshold", [0.0, -0.0, 0.25, -0.25, 0.1, -1e-30, float("inf"),
                                       float("-inf"), float("nan")])
def test_forward_and_backward_by_definition(package, device, dtype, threshold):
    for n in (0, 1, 7, 8, 9, 1000, 100003):
        x = sample(n, dtype, device)
        grad = sample(n, dtype, device, seed=1)
        same_bits(package.threshold_relu(x, threshold), expected(x, threshold))
        got = torch.ops.threshold_relu.backward(grad, x, threshold)
        same_bits(got, expected(x, threshold, grad))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_same_as_pytorch(package, device, dtype):
    # PyTorch's CPU code does not round the threshold to 16 bits: take one that needs no rounding
    for threshold in (0.25, 0.0, float("nan"), float("inf")) + ((0.1,) if device == "cuda" else ()):
        x = sample(5001, dtype, device).requires_grad_()
        z = x.detach().clone().requires_grad_()
        grad = sample(5001, dtype, device, seed=1)
        ours = package.threshold_relu(x, threshold)
        theirs = torch.nn.functional.threshold(z, threshold, 0.0)
        same_bits(ours, theirs)
        ours.backward(grad)
        theirs.backward(grad)
        same_bits(x.grad, z.grad)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_16_bit_pattern(package, device, dtype):
    bits = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    x = bits.view(getattr(torch, dtype)).to(device)
    for threshold in (0.0, 1.0, -1.0, 6e-8, -6e-8, 65504.0, -65504.0, float("inf"), float("nan")):
        same_bits(package.threshold_relu(x, threshold), expected(x, threshold))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_alignment(package, device, dtype):
    base = sample(600, dtype, device)
    for start in range(18):
        for n in (1, 5, 31, 500):
            x = base[start:start + n]
            same_bits(package.threshold_relu(x, 0.25), expected(x, 0.25))
            grad = base[start // 2:start // 2 + n]
            got = torch.ops.threshold_relu.backward(grad, x, 0.25)
            same_bits(got, torch.where(x <= 0.25, torch.zeros_like(x), grad))


SHAPES = {
    "scalar": lambda t: t.reshape(-1)[3],
    "transposed": lambda t: t.transpose(0, 2),
    "sliced": lambda t: t[:, ::2, 1:],
    "sliced and turned": lambda t: t[:, ::3].permute(2, 0, 1),
    "expanded": lambda t: t[:, :, :1].expand(-1, -1, 5),
    "empty": lambda t: t[:0],
    "channels last": lambda t: t.reshape(4, 3, 2, -1).contiguous(memory_format=torch.channels_last),
    "one column": lambda t: t[:, 0, :1],
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_strides(package, device, shape):
    x = SHAPES[shape](sample(6 * 10 * 8, "float32", device).reshape(6, 10, 8))
    before = x.clone()
    y = package.threshold_relu(x, 0.25)
    theirs = torch.nn.functional.threshold(x, 0.25, 0.0)
    same_bits(y, theirs)
    assert y.stride() == theirs.stride()
    for grad in (torch.ones_like(x), torch.tensor(1.0, device=device).expand(x.shape),
                 torch.randn(x.numel(), device=device).reshape(x.shape)):
        same_bits(torch.ops.threshold_relu.backward(grad, x, 0.25),
                  torch.where(x <= 0.25, torch.zeros_like(x), grad))
    same_bits(x, before)  # the input is left alone


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_first_and_second_order(package, device):
    x = torch.randn(4, 5, dtype=torch.float64, device=device)
    x = (x + 0.05 * x.sign() + 0.1).requires_grad_()  # away from the step at 0.1
    assert torch.autograd.gradcheck(lambda x: package.threshold_relu(x, 0.1), x)
    assert torch.autograd.gradgradcheck(lambda x: package.threshold_relu(x, 0.1), x)


@pytest.mark.parametrize("device", DEVICES)
def test_opcheck(package, device):
    ops = torch.ops.threshold_relu
    x = torch.randn(3, 4, 5, device=device)
    for t in (x, x[:, ::2].permute(2, 0, 1), x[:0]):
        t = t.detach().requires_grad_()
        torch.library.opcheck(ops.forward.default, (t, 0.5))
        torch.library.opcheck(ops.backward.default, (torch.randn_like(t).requires_grad_(), t, 0.5))


@pytest.mark.parametrize("device", DEVICES)
def test_compile_makes_one_graph(package, device):
    # inductor on a CPU needs half a minute of g++: there the graph is run as it was traced
    backend = "inductor" if device == "cuda" else "aot_eager"

    def function(x):
        return (package.threshold_relu(2 * x, 0.5) + 1).sum()

    compiled = torch.compile(function, fullgraph=True, backend=backend, dynamic=True)
    for n in (17, 1024):
        x = torch.randn(n, device=device, requires_grad=True)
        z = x.detach().clone().requires_grad_()
        torch.testing.assert_close(compiled(x), function(z))
        compiled(x).backward()
        function(z).backward()
        same_bits(x.grad, z.grad)


@pytest.mark.parametrize("device", DEVICES)
def test_autocast_keeps_the_dtype_it_meets(package, device):
    network = torch.nn.Sequential(torch.nn.Linear(8, 8), package.ThresholdReLU(0.1)).to(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        y = network(torch.randn(4, 8, device=device))
        assert y.dtype == torch.bfloat16
        assert package.threshold_relu(torch.ones(3, device=device)).dtype == torch.float32
    y.sum().backward()
    assert network[0].weight.grad.dtype == torch.float32


def test_two_threads(package):
    """Autograd runs backward in threads of its own; the operator is called from several as well."""
    device, errors = DEVICES[-1], []

    def work(seed):
        try:
            for i in range(20):
                x = sample(20000, "float32", device, seed=100 * seed + i).requires_grad_()
                y = package.threshold_relu(x, 0.25)
                y.backward(torch.ones_like(y))
                same_bits(y, expected(x.detach(), 0.25))
                same_bits(x.grad, (~(x.detach() <= 0.25)).float())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


WRONG = [
    ("dtype", TypeError, "x has dtype Int", lambda op: op.forward(torch.ones(3, dtype=torch.int32))),
    ("complex", TypeError, "x has dtype Complex", lambda op: op.forward(torch.ones(3) * 1j)),
    ("layout", RuntimeError, "x has layout Sparse", lambda op: op.forward(torch.eye(3).to_sparse())),
    ("no tensor", RuntimeError, "argument 'x'", lambda op: op.forward([1.0, 2.0])),
    ("no number", RuntimeError, "argument 'threshold'", lambda op: op.forward(torch.ones(3), "a")),
    ("threshold half", ValueError, "threshold 1e+06 does not fit Half",
     lambda op: op.forward(torch.ones(3).half(), 1e6)),
    ("threshold float", ValueError, "threshold 1e+300 does not fit Float",
     lambda op: op.forward(torch.ones(3), 1e300)),
    ("grad's shape", ValueError, r"grad has shape \[3\], x has \[4\]",
     lambda op: op.backward(torch.ones(3), torch.ones(4))),
    ("grad's dtype", TypeError, "grad has dtype Float, x has Double",
     lambda op: op.backward(torch.ones(3), torch.ones(3).double())),
    ("grad's device", RuntimeError, "grad is on cpu, x on meta",
     lambda op: op.backward(torch.ones(3), torch.ones(3, device="meta"))),
    ("grad's layout", RuntimeError, "grad has layout Sparse",
     lambda op: op.backward(torch.eye(3).to_sparse(), torch.ones(3, 3))),
]


@pytest.mark.parametrize("name, kind, text, call", WRONG, ids=[case[0] for case in WRONG])
def test_wrong_input_names_the_argument(package, name, kind, text, call):
    with pytest.raises(kind, match=text.replace("+", r"\+")):
        call(torch.ops.threshold_relu)


def test_module(package):
    layer = package.ThresholdReLU(0.5)
    assert repr(layer) == "ThresholdReLU(threshold=0.5)" and not list(layer.parameters())
    same_bits(layer(torch.tensor([0.5, 0.75])), torch.tensor([0.0, 0.75]))
    assert package.threshold_relu(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


@needs_gpu
def test_the_current_stream_is_used(package):
    """A long wait on the default stream must not hold up work on another, nor come in between."""
    x = sample(1 << 22, "float32", "cuda")
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    package.threshold_relu(x, 0.25)
    torch.cuda.synchronize()
    side.wait_stream(torch.cuda.current_stream())
    torch.cuda._sleep(2_000_000_000)  # cycles: about a second
    with torch.cuda.stream(side):
        y = package.threshold_relu(x, 0.25)
        done.record()
    done.synchronize()
    assert not torch.cuda.default_stream().query(), "the default stream should still be waiting"
    torch.cuda.synchronize()
    same_bits(y, expected(x, 0.25))


@needs_gpu
def test_more_than_2_to_the_31_elements(package):
    n = (1 << 31) + 5
    if torch.cuda.mem_get_info()[0] < 3 * n * 2:
        pytest.skip("needs 13 GiB of free device memory")
    x = torch.zeros(n, dtype=torch.float16, device="cuda")
    x[-3:] = torch.tensor([1.0, -1.0, 2.0])
    y = package.threshold_relu(x - 1, 0.0)
    assert y[-3:].tolist() == [0.0, 0.0, 1.0] and y.count_nonzero().item() == 1


@needs_gpu
def test_device_guard(package):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    x = torch.randn(100, device="cuda:1")
    assert torch.cuda.current_device() == 0
    y = package.threshold_relu(x, 0.25)
    assert y.device == x.device and torch.cuda.current_device() == 0
    same_bits(y, expected(x, 0.25))


@needs_gpu
def test_mixed_devices_are_told(package):
    with pytest.raises(RuntimeError, match="grad is on cpu, x on cuda:0"):
        torch.ops.threshold_relu.backward(torch.ones(3), torch.ones(3, device="cuda"), 0.0)


def test_example_learns(package, tmp_path):
    # from elsewhere: beside the sources Python would take the folder that is not built
    shutil.copy(LESSON / "example.py", tmp_path)
    result = python(tmp_path / "example.py", env={"PYTHONPATH": FOLDER / "here"}, cwd=tmp_path)
    assert result.code == 0 and "before learning: 5" in result.out, result


def test_beside_the_sources_an_installed_package_is_hidden(package):
    source = FOLDER / "here.source"
    shutil.rmtree(source / "build", ignore_errors=True)
    result = python("-c", "import threshold_relu", env={"PYTHONPATH": FOLDER / "here"}, cwd=source)
    assert result.code == 1 and "is not built" in result.err, result


# ---- the ways in


@pytest.mark.slow
def test_load_compiles_once(tmp_path):
    need("ninja")
    env = {"TORCH_EXTENSIONS_DIR": tmp_path, "BACKEND": "" if HAS_GPU else "cpu", "SMS": ""}
    first, second = (python("load.py", env=env) for _ in range(2))
    for result in (first, second):
        assert result.code == 0 and "= [0.0, 0.0, 0.0, 2.0]" in result.out, result
    seconds = [float(re.search(r"load\(\) took ([\d.]+) s", r.out).group(1)) for r in (first, second)]
    assert seconds[1] < seconds[0] / 2, "the second run should find the library built"


def test_ctypes_demo():
    backend = "cuda" if HAS_GPU else "cpu"
    folder = BUILD_DIR / f"07_{backend}"
    result = make(f"BACKEND={backend}", f"O={folder}", "LESSONS=07_pytorch_extension")
    assert result.code == 0, result
    result = python("ctypes_demo.py", folder / "07_pytorch_extension" / "libthreshold_relu.so")
    if not HAS_GPU:
        assert result.code == 2 and len(result.err.splitlines()) == 1, result
        return
    assert result.code == 0, result
    assert "a contiguous tensor: right" in result.out and "values are wrong" in result.out


@needs_nvcc
def test_a_toolkit_of_another_major_version_is_refused(tmp_path):
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 9.2, V9.2.148'\n")
    nvcc.chmod(0o755)
    if torch.version.cuda is None:
        pytest.skip("this PyTorch has no CUDA")
    result = python("extension.py", env={"CUDA_HOME": tmp_path, "SMS": "90", "BACKEND": ""})
    assert result.code == 2 and "the first number must be the same" in result.err, result
    assert torch.version.cuda in result.err and "9.2" in result.err


@needs_nvcc
@pytest.mark.slow
def test_a_library_for_another_architecture(tmp_path):
    """Cross-compiled without a GPU; on a GPU of another architecture it gives "no kernel image"."""
    if torch.version.cuda is None:
        pytest.skip("this PyTorch has no CUDA")
    fits = python("extension.py", env={"SMS": "90", "BACKEND": ""})
    if fits.code == 2:
        pytest.skip(fits.err.strip())
    other = "8.0" if not HAS_GPU or torch.cuda.get_device_capability()[0] != 8 else "9.0"
    target = build("", "other", TORCH_CUDA_ARCH_LIST=other)
    library = next((target / "threshold_relu").glob("_C*.so"))
    sm = other.replace(".", "")
    if shutil.which("cuobjdump"):
        listed = run_command(["cuobjdump", "--list-elf", library])
        assert f"sm_{sm}" in listed.out and len(listed.out.splitlines()) == 1, listed
    result = run_command([ROOT / "scripts" / "inspect", library, "--gpu", "7.5"])
    assert result.code == 1 and f"sm_{sm}" in result.out, result
    if not HAS_GPU:
        return
    program = ("import torch, threshold_relu\n"
               "threshold_relu.threshold_relu(torch.ones(3, device='cuda'))")
    result = python("-c", program, env={"PYTHONPATH": target}, cwd=tmp_path)
    assert result.code == 1 and "no kernel image is available" in result.err, result

// no_kernel_image: a program runs on a GPU when the file holds code for it. What the file holds is
// decided when it is compiled, and found out at the first launch.
//
// The rules, which image_runs() below spells out:
//   SASS (sm_86)       machine code: the same major version, the same or a higher minor
//   PTX (compute_86)   compiled by the driver when the program runs: any newer GPU
//   an `a` (sm_90a)    exactly that GPU, for SASS and for PTX
//   PTX of a toolkit newer than the driver: not at all
//
// Predict before you run it: a file with SASS for sm_80 and nothing else. Does it run on an
// RTX 4090 (8.9)? On an H100 (9.0)?
//
// usage: no_kernel_image [CASE] [--fixed]
#include "twins.h"
#include <dirent.h>
#include <dlfcn.h>
#include <libgen.h>

// One program in images/, as lesson.mk compiles it: sass_86, sass_90a, ptx_75 ...
struct image {
    char name[32];
    int ptx;   // 1: PTX, 0: SASS
    int cc;    // 86 for 8.6
    int exact; // the suffix `a`: this GPU and no other
};
enum { MAX_IMAGES = 64, NO_IMAGE = 209, PTX_TOO_NEW = 222 };

static const char *images_folder(void)
{
    static char folder[4096 + 16];
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    snprintf(folder, sizeof(folder), "%s/images", dirname(self));
    return folder;
}

static int image_order(const void *a, const void *b)
{
    const struct image *x = (const struct image *)a, *y = (const struct image *)b;
    int by_cc = x->cc - y->cc, by_suffix = x->exact - y->exact;
    return x->ptx != y->ptx ? x->ptx - y->ptx : by_cc ? by_cc : by_suffix;
}

// The images that were built, sorted: SASS by number, then PTX.
static int find_images(struct image *images)
{
    int count = 0;
    DIR *folder = opendir(images_folder());
    for (struct dirent *entry; folder && (entry = readdir(folder)) && count < MAX_IMAGES;) {
        struct image image;
        char kind[8], suffix[4] = "";
        if (strlen(entry->d_name) >= sizeof(image.name) || strchr(entry->d_name, '.') ||
            sscanf(entry->d_name, "%4[a-z]_%d%3s", kind, &image.cc, suffix) < 2)
            continue;
        snprintf(image.name, sizeof(image.name), "%.31s", entry->d_name);
        image.ptx = strcmp(kind, "ptx") == 0;
        image.exact = strcmp(suffix, "a") == 0;
        images[count++] = image;
    }
    if (folder)
        closedir(folder);
    if (count == 0)
        twin_waive("the programs in %s are not built: make BACKEND=cuda LESSONS=06_error_cases",
                   images_folder());
    qsort(images, (size_t)count, sizeof(images[0]), image_order);
    return count;
}

// The rules: 0 when the image runs on a GPU of compute capability `cc`, otherwise the error.
static int image_runs(const struct image *image, int cc, int ptx_too_new)
{
    if (image->exact && image->cc != cc)
        return NO_IMAGE;
    if (!image->ptx) // machine code: one major version, upwards
        return image->cc / 10 == cc / 10 && image->cc % 10 <= cc % 10 ? 0 : NO_IMAGE;
    if (image->cc > cc)
        return NO_IMAGE;
    return ptx_too_new ? PTX_TOO_NEW : 0;
}

static int this_gpu(void)
{
    return device_facts.major * 10 + device_facts.minor;
}

// The PTX in images/ has the version of the toolkit that made it; the driver knows up to its own.
static int ptx_is_too_new(void)
{
    int driver = 0;
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    return CUDART_VERSION / 10 > driver / 10;
}

// Runs one image in a process of its own, with variables like "CUDA_FORCE_PTX_JIT=1" before it.
// Returns the error of its launch; *ms is what launch and synchronise took.
static int run_image(const char *name, const char *environment, int show, double *ms)
{
    char command[4400], line[256];
    int launch = -1, number;
    snprintf(command, sizeof(command), "%s '%s/%s' %d 2>&1", environment, images_folder(), name,
             common_options.device);
    FILE *output = popen(command, "r");
    if (show)
        printf("  %s%simages/%s\n", environment, environment[0] ? " " : "", name);
    while (output && fgets(line, sizeof(line), output)) {
        if (show)
            printf("    %s", line);
        if (sscanf(line, "launch %d", &number) == 1)
            launch = number;
        if (ms)
            sscanf(line, "milliseconds %lf", ms);
    }
    if (output)
        pclose(output);
    check_that(launch >= 0, "images/%s did not come to its launch", name);
    return launch;
}

static void launch_result(int error, const char *image)
{
    char call[96];
    snprintf(call, sizeof(call), "the first launch in images/%s", image);
    twin_result((cudaError_t)error, call);
}

// The last image that `fits` takes, or NULL; `exact` images are looked at on their own.
static const struct image *choose_image(struct image *images, int (*fits)(const struct image *))
{
    const struct image *chosen = NULL;
    int count = find_images(images);
    for (int i = 0; i < count; i++)
        if (fits(&images[i]))
            chosen = &images[i];
    return chosen;
}

static int is_own_sass(const struct image *i)
{
    return !i->ptx && !i->exact && image_runs(i, this_gpu(), 0) == 0;
}

static int is_older_ptx(const struct image *i)
{
    return i->ptx && !i->exact && i->cc <= this_gpu();
}

static void run_broken(int (*fits)(const struct image *), const char *environment,
                       const char *none_fits)
{
    struct image images[MAX_IMAGES];
    const struct image *image = choose_image(images, fits);
    if (!image)
        twin_waive("%s", none_fits);
    launch_result(run_image(image->name, environment, 1, NULL), image->name);
}

// The image that runs here: SASS for this GPU's major version, or else the `fat` one with PTX.
static void run_right_image(void)
{
    struct image images[MAX_IMAGES];
    const struct image *image = choose_image(images, is_own_sass);
    const char *name = image ? image->name : "fat";
    int error = run_image(name, "", 1, NULL);
    check_that(error == 0, "images/%s: error %d", name, error);
}

// ---- other_major
static int is_other_major(const struct image *i)
{
    return !i->ptx && !i->exact && i->cc / 10 != device_facts.major;
}

static void other_major_broken(void)
{
    run_broken(is_other_major, "", "no image for another major version was built");
}

static void other_major_fixed(void)
{
    run_right_image();
}

// ---- higher_minor
static int is_higher_minor(const struct image *i)
{
    return !i->ptx && !i->exact && i->cc / 10 == device_facts.major && i->cc > this_gpu();
}

static void higher_minor_broken(void)
{
    run_broken(is_higher_minor, "",
               "this toolkit knows no GPU of this major version and a higher minor");
}

static void higher_minor_fixed(void)
{
    run_right_image();
}

// ---- newer_ptx
static int is_newer_ptx(const struct image *i)
{
    return i->ptx && !i->exact && i->cc > this_gpu();
}

static void newer_ptx_broken(void)
{
    run_broken(is_newer_ptx, "", "this toolkit makes no PTX newer than this GPU");
}

static void newer_ptx_fixed(void)
{
    struct image images[MAX_IMAGES];
    const struct image *image = choose_image(images, is_older_ptx);
    if (!image || ptx_is_too_new())
        twin_waive("no PTX image that this driver can compile for this GPU was built");
    int error = run_image(image->name, "", 1, NULL); // older PTX: compiled by the driver
    check_that(error == 0, "images/%s: error %d", image->name, error);
}

// ---- arch_specific
static int is_exact_for_other(const struct image *i)
{
    return i->exact && i->cc != this_gpu();
}

static void arch_specific_broken(void)
{
    struct image images[MAX_IMAGES];
    int count = find_images(images);
    for (int i = 0; i < count; i++)
        if (images[i].exact && images[i].cc == this_gpu())
            printf("  images/%s is for exactly this GPU and runs: launch %d\n", images[i].name,
                   run_image(images[i].name, "", 0, NULL));
    run_broken(is_exact_for_other, "", "no architecture-specific image was built");
}

static void arch_specific_fixed(void)
{
    run_right_image();
}

// ---- when_it_shows
static void when_it_shows_broken(void)
{
    struct image images[MAX_IMAGES];
    const struct image *image = choose_image(images, is_other_major);
    if (!image)
        twin_waive("no image for another major version was built");
    int lazy = run_image(image->name, "CUDA_MODULE_LOADING=LAZY", 1, NULL);
    int eager = run_image(image->name, "CUDA_MODULE_LOADING=EAGER", 1, NULL);
    check_that(lazy == eager, "lazy loading gives %d, eager loading %d", lazy, eager);
    launch_result(lazy, image->name);
}

static void when_it_shows_fixed(void)
{
    cudaFuncAttributes attributes; // asks for the code before any work is done: fails early
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, device_probe_kernel));
    printf("  cudaFuncGetAttributes at the start of a program: the code is there (binary version "
           "%d, PTX version %d)\n",
           attributes.binaryVersion, attributes.ptxVersion);
}

// ---- jit_disabled
static const char *cold_cache(void) // no compiled PTX is taken from, or left in, the user's cache
{
    return "CUDA_CACHE_DISABLE=1";
}

static void jit_disabled_broken(void)
{
    char environment[128];
    snprintf(environment, sizeof(environment), "%s CUDA_DISABLE_PTX_JIT=1", cold_cache());
    run_broken(is_older_ptx, environment, "no PTX image for this GPU was built");
}

static void jit_disabled_fixed(void)
{
    struct image images[MAX_IMAGES];
    const struct image *image = choose_image(images, is_older_ptx);
    if (!image || ptx_is_too_new())
        twin_waive("no PTX image that this driver can compile for this GPU was built");
    double ms = 0;
    int error = run_image(image->name, cold_cache(), 1, &ms);
    printf("  %.1f ms for the first launch: the driver compiled the PTX\n", ms);
    check_that(error == 0, "images/%s: error %d", image->name, error);
}

// ---- jit_forced
static void jit_forced_broken(void)
{
    run_broken(is_own_sass, "CUDA_FORCE_PTX_JIT=1", "no SASS image for this GPU was built");
}

static void jit_forced_fixed(void)
{
    run_right_image(); // without the variable
}

// ---- ptx_version
// PTX text that the driver compiles when it is loaded, as CuPy, Numba and NVRTC users do it.
static cudaError_t load_ptx(const char *version)
{
    typedef int (*load_function)(void **module, const void *text); // cuModuleLoadData of the driver
    char text[256];
    void *module = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW);
    load_function load = driver ? (load_function)dlsym(driver, "cuModuleLoadData") : NULL;
    if (!load)
        twin_waive("libcuda.so.1 cannot be loaded");
    CUDA_CHECK(cudaFree(NULL)); // the runtime makes its context current, which the driver uses
    snprintf(text, sizeof(text),
             ".version %s\n.target sm_%d\n.address_size 64\n.visible .entry empty() { ret; }\n",
             version, this_gpu() < 75 ? 50 : 75);
    printf("  PTX text that begins with '.version %s'\n", version);
    return (cudaError_t)load(&module, text); // the driver's numbers are the runtime's
}

static void ptx_version_broken(void)
{
    twin_result(load_ptx("99.0"), "cuModuleLoadData");
}

static void ptx_version_fixed(void)
{
    cudaError_t error = load_ptx("6.3");
    check_that(error == cudaSuccess, "cuModuleLoadData gives %d", (int)error);
}

// ---- image_rules
static const int some_gpus[] = {75, 80, 86, 89, 90, 100, 120};
enum { SOME_GPUS = sizeof(some_gpus) / sizeof(some_gpus[0]) };

static void image_rules_broken(void)
{
    struct image images[MAX_IMAGES];
    int count = find_images(images), cannot = 0;
    printf("  %-10s", "GPU:");
    for (int g = 0; g < SOME_GPUS; g++)
        printf(" %4d.%d", some_gpus[g] / 10, some_gpus[g] % 10);
    printf("\n");
    for (int i = 0; i < count; i++) {
        printf("  %-10s", images[i].name);
        for (int g = 0; g < SOME_GPUS; g++) {
            int error = image_runs(&images[i], some_gpus[g], 0);
            printf(" %6s", error ? "209" : images[i].ptx ? "JIT" : "runs");
            cannot += error != 0;
        }
        printf("\n");
    }
    printf("  what a file really holds: scripts/inspect %s/sass_90\n", images_folder());
    SYMPTOM(cannot > 0, "%d of %d pairs of file and GPU do not run", cannot, count * SOME_GPUS);
}

static void image_rules_fixed(void)
{
    struct image images[MAX_IMAGES];
    int count = find_images(images), covered = 0;
    for (int g = 0; g < SOME_GPUS; g++) {
        int runs = 0;
        for (int i = 0; i < count; i++)
            runs |= image_runs(&images[i], some_gpus[g], 0) == 0;
        covered += runs;
    }
    printf("  a file that holds them all (make SMS=all) runs on %d of the %d\n", covered,
           SOME_GPUS);
    check_that(covered == SOME_GPUS, "only %d GPUs are covered", covered);
}

// ---- image_matrix
static int surprises(void)
{
    struct image images[MAX_IMAGES];
    int count = find_images(images), differ = 0;
    printf("  this GPU is %d.%d\n  %-10s %-12s %s\n", device_facts.major, device_facts.minor,
           "file", "the rules", "what happened");
    for (int i = 0; i < count; i++) {
        int rule = image_runs(&images[i], this_gpu(), ptx_is_too_new());
        int launch = run_image(images[i].name, "", 0, NULL);
        printf("  %-10s %-12d %d %s%s\n", images[i].name, rule, launch,
               cudaGetErrorName((cudaError_t)launch),
               launch == 0 && images[i].ptx ? " (compiled by the driver)" : "");
        differ += launch != rule && !(launch == 98 && rule == NO_IMAGE);
    }
    return differ;
}

static void image_matrix_broken(void)
{
    int differ = surprises();
    SYMPTOM(differ == 0, "%d files behaved otherwise", differ);
}

static void image_matrix_fixed(void)
{
    int error =
        run_image("fat", "", 1, NULL); // SASS for each major version, and PTX for the future
    check_that(error == 0, "images/fat: error %d", error);
}

// ---- framework
static void framework_look(int judge)
{
    char line[512] = "";
    FILE *python = popen("timeout 20 python3 -c 'import torch; "
                         "print(\" \".join(torch.cuda.get_arch_list()))' 2>/dev/null",
                         "r");
    int found = python && fgets(line, sizeof(line), python) != NULL;
    if (python)
        pclose(python);
    if (!found)
        twin_waive(
            "python3 has no PyTorch, or one that takes too long to load; where it is: python3 "
            "-c 'import torch; print(torch.cuda.get_arch_list())'");
    printf("  torch.cuda.get_arch_list(): %s", line);
    int usable = 0, unusable = 0;
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        struct image image;
        image.ptx = strncmp(word, "compute_", 8) == 0;
        image.cc = atoi(word + strcspn(word, "0123456789"));
        image.exact = word[strlen(word) - 1] == 'a';
        int error = image_runs(&image, this_gpu(), 0);
        printf("    %-12s %s on %d.%d\n", word,
               error       ? "does not run"
               : image.ptx ? "is compiled by the driver"
                           : "runs",
               device_facts.major, device_facts.minor);
        usable += error == 0;
        unusable += error != 0;
    }
    if (judge)
        SYMPTOM(usable + unusable > 0, "%d of %d entries are of no use to this GPU", unusable,
                usable + unusable);
    else
        check_that(usable > 0, "this PyTorch has no code for this GPU: install another build");
}

static void framework_broken(void)
{
    framework_look(1);
}

static void framework_fixed(void)
{
    framework_look(0);
}

static const struct twin twins[] = {
    TWIN(other_major),  TWIN(higher_minor), TWIN(newer_ptx),  TWIN(arch_specific),
    TWIN(ptx_version),  TWIN(jit_disabled), TWIN(jit_forced), TWIN(when_it_shows),
    TWIN(image_matrix), TWIN(image_rules),  TWIN(framework),
};

TWINS_MAIN("06_error_cases/no_kernel_image", "does this file hold code for this GPU?", twins)

// images.h - the programs in images/, each compiled for one architecture (see lesson.mk), the rules
// that say where each of them runs, and a way to run one and see what its launch gives.
//
//   SASS (sm_86)       machine code: the same major version, the same or a higher minor
//   PTX (compute_86)   compiled by the driver when the program runs: any newer GPU
//   an `a` (sm_90a)    exactly that GPU, for SASS and for PTX
//   PTX of a toolkit newer than the driver: not at all
#ifndef ERROR_CASES_IMAGES_H
#define ERROR_CASES_IMAGES_H

#include "twins.h"
#include <dirent.h>
#include <libgen.h>

// One program in images/, as lesson.mk compiles it: sass_86, sass_90a, ptx_75 ...
struct image {
    char name[32];
    int ptx;   // 1: PTX, 0: SASS
    int cc;    // 86 for 8.6
    int exact; // the suffix `a`: this GPU and no other
};
enum { MAX_IMAGES = 64, NO_IMAGE = 209, PTX_TOO_NEW = 222 };

static inline const char *images_folder(void)
{
    static char folder[4096 + 16];
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    snprintf(folder, sizeof(folder), "%s/images", dirname(self));
    return folder;
}

static inline int image_order(const void *a, const void *b)
{
    const struct image *x = (const struct image *)a, *y = (const struct image *)b;
    int by_cc = x->cc - y->cc, by_suffix = x->exact - y->exact;
    return x->ptx != y->ptx ? x->ptx - y->ptx : by_cc ? by_cc : by_suffix;
}

// The images that were built, sorted: SASS by number, then PTX.
static inline int find_images(struct image *images)
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
static inline int image_runs(const struct image *image, int cc, int ptx_too_new)
{
    if (image->exact && image->cc != cc)
        return NO_IMAGE;
    if (!image->ptx) // machine code: one major version, upwards
        return image->cc / 10 == cc / 10 && image->cc % 10 <= cc % 10 ? 0 : NO_IMAGE;
    if (image->cc > cc)
        return NO_IMAGE;
    return ptx_too_new ? PTX_TOO_NEW : 0;
}

static inline int this_gpu(void)
{
    return device_facts.major * 10 + device_facts.minor;
}

// The PTX in images/ has the version of the toolkit that made it; the driver knows up to its own.
static inline int ptx_is_too_new(void)
{
    int driver = 0;
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    return CUDART_VERSION / 10 > driver / 10;
}

// Runs one image in a process of its own, with variables like "CUDA_FORCE_PTX_JIT=1" before it.
// Returns the error of its launch; *ms is what launch and synchronise took.
static inline int run_image(const char *name, const char *environment, int show, double *ms)
{
    char command[8192], line[256];
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

static inline void launch_result(int error, const char *image)
{
    char call[96];
    snprintf(call, sizeof(call), "the first launch in images/%s", image);
    twin_result((cudaError_t)error, call);
}

// The last image that `fits` takes, or NULL; `exact` images are looked at on their own.
static inline const struct image *choose_image(struct image *images,
                                               int (*fits)(const struct image *))
{
    const struct image *chosen = NULL;
    int count = find_images(images);
    for (int i = 0; i < count; i++)
        if (fits(&images[i]))
            chosen = &images[i];
    return chosen;
}

static inline int is_own_sass(const struct image *i)
{
    return !i->ptx && !i->exact && image_runs(i, this_gpu(), 0) == 0;
}

static inline int is_older_ptx(const struct image *i)
{
    return i->ptx && !i->exact && i->cc <= this_gpu();
}

static inline void run_broken(int (*fits)(const struct image *), const char *environment,
                              const char *none_fits)
{
    struct image images[MAX_IMAGES];
    const struct image *image = choose_image(images, fits);
    if (!image)
        twin_waive("%s", none_fits);
    launch_result(run_image(image->name, environment, 1, NULL), image->name);
}

// The image that runs here: SASS for this GPU's major version, or else the `fat` one with PTX.
static inline void run_right_image(void)
{
    struct image images[MAX_IMAGES];
    const struct image *image = choose_image(images, is_own_sass);
    const char *name = image ? image->name : "fat";
    int error = run_image(name, "", 1, NULL);
    check_that(error == 0, "images/%s: error %d", name, error);
}

#endif

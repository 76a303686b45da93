// no_kernel_image: a program runs on a GPU when the file holds code for it. What the file holds is
// decided when it is compiled, and found out at the first launch. images.h spells out the rules.
//
// Predict before you run it: a file with SASS for sm_80 and nothing else. Does it run on an
// RTX 4090 (8.9)? On an H100 (9.0)?
//
// usage: no_kernel_image [CASE] [--fixed]
#include "images.h"

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

static const struct twin twins[] = {
    TWIN(other_major),   TWIN(higher_minor),  TWIN(newer_ptx),
    TWIN(arch_specific), TWIN(when_it_shows),
};

TWINS_MAIN("06_error_cases/no_kernel_image", "does this file hold code for this GPU?", twins)

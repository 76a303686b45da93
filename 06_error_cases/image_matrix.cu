// image_matrix: many files, many GPUs: which file runs where? The rules (image_runs() in images.h)
// predict, and the GPU of this machine decides.
//
// Predict before you run it: of the files sass_86, sass_90, sass_90a, ptx_75 and ptx_121, which run
// on your GPU?
//
// usage: image_matrix [CASE] [--fixed]
#include "images.h"

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
    printf("  what a file really holds: scripts/inspect 06_error_cases/images/%s\n",
           images[0].name);
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
    TWIN(image_matrix),
    TWIN(image_rules),
    TWIN(framework),
};

TWINS_MAIN("06_error_cases/image_matrix", "which file runs on which GPU?", twins)

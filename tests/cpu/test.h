// For the feature tests: a program prints what it found, and fails when a check does. Compiled by nvcc and by
// nvcc-cpu; where there is a GPU both must print the same.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>

static int failures = 0;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                       \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

#define OK(call)                                                                                   \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            printf("%s:%d: %s: %d %s\n", __FILE__, __LINE__, #call, error_,                        \
                   cudaGetErrorName(error_));                                                      \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

// Must fail with this error; the error is read, so that it does not show up again.
#define FAILS(error, call)                                                                         \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        cudaGetLastError();                                                                        \
        if (error_ != (error)) {                                                                   \
            printf("%s:%d: %s: %d instead of %s\n", __FILE__, __LINE__, #call, error_, #error);    \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static int finish()
{
    printf(failures ? "FAILED: %d\n" : "ok\n", failures);
    return failures != 0;
}

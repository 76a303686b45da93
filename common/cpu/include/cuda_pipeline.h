// Asynchronous copies from global to shared memory. Here a copy is done at once, so only its arguments are checked.
#pragma once
#pragma GCC system_header
#include "cuda_runtime.h"

inline void __pipeline_memcpy_async(void *shared, const void *global, size_t size,
                                    size_t zero_fill = 0)
{
    assert((size == 4 || size == 8 || size == 16) && zero_fill <= size);
    assert((size_t)shared % size == 0 && (size_t)global % size == 0);
    char *to = (char *)shared;
    const char *from = (const char *)global;
    for (size_t i = 0; i < size; i++) to[i] = i < size - zero_fill ? from[i] : 0;
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(size_t) {}

// The driver API is not on the CPU backend; programs often include its header without using it.
#pragma once
#include "cuda_runtime.h"
#define CUDA_VERSION 13000

#pragma once

/// Marks a formula that the CPU and CUDA share: one definition, the same bits on both.
#if defined(__CUDACC__)
#define ZEROLAB_HOST_DEVICE __host__ __device__
#else
#define ZEROLAB_HOST_DEVICE
#endif

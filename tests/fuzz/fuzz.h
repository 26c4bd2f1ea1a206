/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What fuzz targets share. Tests call their entry points with seeded inputs, with any compiler.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What does not hold is a finding. */
static inline void check(bool right)
{
    if (!right)
        abort();
}

#endif

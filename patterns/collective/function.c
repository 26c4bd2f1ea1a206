/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective.h"

#include <stdio.h>

int pattern_make_function(struct pattern_plan *plan, const struct pattern_request *request,
                          struct pattern_why *why)
{
    const struct pattern_function *function = plan->kind->function;
    int index = 0;

    if (function->algorithms != NULL)
        index = pattern_choose("algorithm", function->algorithms, request->algorithm, why);
    if (index < 0)
        return index;
    if (function->floats && request->bytes % sizeof(float) != 0)
        return pattern_refuse(why, "%s: bytes %llu is no whole number of floats of 4 bytes",
                              function->name, (unsigned long long)request->bytes);
    if (request->skew > 100)
        return pattern_refuse(why, "%s: skew %u is more than 100 percent", function->name,
                              request->skew);
    plan->tell = function->tell[index];
    plan->algorithm = function->algorithms != NULL ? function->algorithms[index] : NULL;
    plan->skew = request->skew;
    plan->phases = 1;
    return 0;
}

int pattern_name_function(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    const char *word = plan->algorithm;

    (void)phase;
    return snprintf(name, size, "%s%s%s", plan->kind->function->name, word != NULL ? " " : "",
                    word != NULL ? word : "");
}

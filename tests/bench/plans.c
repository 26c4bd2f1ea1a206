/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the next phase of one rank among 65,536 costs: its flows of both sides, for every order of
 * AAPC and for random rings, phase after phase as a node asks for them. Reach: below 1 us each,
 * and the whole process below 64 MB.
 */
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const bool no = false;

#define PHASES 60000u /* a phase each: no plan here has fewer */
#define ROUNDS 7
#define MOST_NS 1000.0
#define MOST_KB (64 * 1024)
#define RANK 12345u

struct subject {
    const char *name;
    struct pattern_request request;
};

static const struct subject subjects[] = {
    {"aapc shift", {.name = "aapc", .n = PATTERN_RANKS_MAX, .order = "shift"}},
    {"aapc pairwise", {.name = "aapc", .n = PATTERN_RANKS_MAX, .order = "pairwise"}},
    {"aapc pairwise, odd", {.name = "aapc", .n = PATTERN_RANKS_MAX - 1, .order = "pairwise"}},
    {"aapc xor", {.name = "aapc", .n = PATTERN_RANKS_MAX, .order = "xor"}},
    {"random ring, forward",
     {.name = "ring",
      .n = PATTERN_RANKS_MAX,
      .natural = &no,
      .count = PHASES,
      .directions = "forward"}},
    {"random ring, both",
     {.name = "ring",
      .n = PATTERN_RANKS_MAX,
      .natural = &no,
      .count = PHASES,
      .directions = "both"}},
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The flows that one rank has over all phases: a sum that the compiler can't leave out. */
static size_t walk(const struct pattern_plan *plan, uint64_t *sum)
{
    struct pattern_flow flows[2];
    size_t count = 0;

    for (uint32_t phase = 0; phase < PHASES; phase++) {
        for (int side = PATTERN_SENDS; side <= PATTERN_RECEIVES; side++) {
            size_t here = pattern_flows(plan, phase, RANK, (enum pattern_side)side, flows, 2);

            for (size_t i = 0; i < here; i++)
                *sum += flows[i].src ^ flows[i].dst;
            count += here;
        }
    }
    return count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double measure(const struct subject *subject)
{
    struct pattern_plan *plan = NULL;
    char why[256] = "";
    double took_ns[ROUNDS];
    uint64_t sum = 0;
    size_t flows = 0;

    if (pattern_plan_make(&plan, &subject->request, why, sizeof why) < 0) {
        fprintf(stderr, "plans: %s\n", why);
        exit(1);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        double start_ns = now_ns();

        flows = walk(plan, &sum);
        took_ns[round] = (now_ns() - start_ns) / PHASES;
    }
    pattern_plan_free(plan);
    qsort(took_ns, ROUNDS, sizeof took_ns[0], compare);
    printf("%-22s %7.1f ns a phase (best %.1f), %.2f flows a phase, check %016llx\n", subject->name,
           took_ns[ROUNDS / 2], took_ns[0], (double)flows / PHASES, (unsigned long long)sum);
    return took_ns[ROUNDS / 2];
}

int main(void)
{
    struct rusage usage;
    double worst_ns = 0;

    printf("one rank of %u, the flows of both sides, CPU time, median of %d\n", PATTERN_RANKS_MAX,
           ROUNDS);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        double ns = measure(&subjects[i]);

        worst_ns = ns > worst_ns ? ns : worst_ns;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("slowest phase %.0f ns, reach below %.0f: %s\n", worst_ns, MOST_NS,
           worst_ns < MOST_NS ? "PASS" : "RED");
    printf("whole process %ld kB, reach below %d: %s\n", usage.ru_maxrss, MOST_KB,
           usage.ru_maxrss < MOST_KB ? "PASS" : "RED");
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The computed permutations: bijections with an exact inverse, and as random as shuffled ones,
 * for the few ranks of a lab too. All draws are fixed, so that the statistics can't fail by chance;
 * the bounds are those that a true shuffle passes with probability 1 - 10^-6 or better.
 */
#include "test_patterns_util.h"

#include <math.h>
#include <string.h>

#include "permutation.h"

static void check_bijection(uint32_t n, uint64_t seed, uint64_t stream)
{
    struct permutation permutation = permutation_draw(n, seed, stream);
    bool *met = calloc(n, sizeof(*met));

    for (uint32_t position = 0; position < n; position++) {
        uint32_t element = permutation_at(&permutation, position);

        assert_in_range(element, 0, n - 1);
        assert_false(met[element]);
        met[element] = true;
        assert_int_equal(permutation_position(&permutation, element), position);
    }
    free(met);
}

static void permutations_are_bijections(void **state)
{
    for (uint32_t n = 1; n <= (long_run() ? 2000 : 200); n++)
        check_bijection(n, n, 1);
    check_bijection(65535, 1, UINT64_MAX);
    check_bijection(65536, UINT64_MAX, 0);
}

/* The number of a permutation of n elements among all n! (Lehmer code). */
static uint32_t number_of(const struct permutation *permutation)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < permutation->n; i++) {
        uint32_t smaller_behind = 0;

        for (uint32_t j = i + 1; j < permutation->n; j++)
            smaller_behind += permutation_at(permutation, j) < permutation_at(permutation, i);
        number = number * (permutation->n - i) + smaller_behind;
    }
    return number;
}

static double chi_square(const uint32_t *observed, uint32_t cells, double expected)
{
    double sum = 0;

    for (uint32_t i = 0; i < cells; i++)
        sum += (observed[i] - expected) * (observed[i] - expected) / expected;
    return sum;
}

struct uniformity_case {
    uint32_t n;
    uint32_t factorial;
    double bound; /* chi-square's 1 - 10^-6 quantile at n! - 1 degrees of freedom */
};

static const struct uniformity_case uniformity_cases[] = {
    {.n = 2, .factorial = 2, .bound = 23.9},
    {.n = 3, .factorial = 6, .bound = 35.9},
    {.n = 4, .factorial = 24, .bound = 71.9},
    {.n = 5, .factorial = 120, .bound = 207.0},
};

/* Either the seed changes or the stream, by one each time, as users and rings do. */
static void check_uniform(const struct uniformity_case *uniform, bool by_seed)
{
    const uint32_t per_cell = 300;
    uint32_t observed[120] = {0};

    for (uint32_t i = 0; i < per_cell * uniform->factorial; i++) {
        struct permutation permutation =
            permutation_draw(uniform->n, by_seed ? i : 1, by_seed ? 1 : i);

        observed[number_of(&permutation)]++;
    }
    assert_true(chi_square(observed, uniform->factorial, per_cell) < uniform->bound);
}

static void all_permutations_of_few_are_equally_likely(void **state)
{
    for (size_t i = 0; i < sizeof(uniformity_cases) / sizeof(uniformity_cases[0]); i++) {
        check_uniform(&uniformity_cases[i], true);
        check_uniform(&uniformity_cases[i], false);
    }
}

/* Counts over `draws` permutations how often each element follows each other one in the ring, and
 * how often each one is at each position: both are uniform. */
static void check_positions_and_successors(uint32_t n, uint32_t draws)
{
    uint32_t *at = calloc((size_t)n * n, sizeof(*at));
    uint32_t *after = calloc((size_t)n * n, sizeof(*after));
    /* Rows and columns have fixed sums: (n - 1)^2 degrees of freedom, each n / (n - 1) large. */
    double freedom = (double)(n - 1) * (n - 1);
    double bound = (freedom + 6 * sqrt(2 * freedom) + 20) * n / (n - 1);

    for (uint32_t seed = 0; seed < draws; seed++) {
        struct permutation permutation = permutation_draw(n, seed, 1);
        uint32_t element = permutation_at(&permutation, n - 1);

        for (uint32_t position = 0; position < n; position++) {
            uint32_t next = permutation_at(&permutation, position);

            at[position * n + next]++;
            after[element * n + next]++;
            element = next;
        }
    }
    assert_true(chi_square(at, n * n, (double)draws / n) < bound);
    /* Nobody follows himself: n empty cells, each adding its expectation, taken out again. */
    assert_true(chi_square(after, n * n, (double)draws / (n - 1)) - (double)n * draws / (n - 1) <
                bound);
    free(after);
    free(at);
}

static void ranks_are_anywhere_equally_often(void **state)
{
    uint32_t draws = long_run() ? 100000 : 3000;

    for (uint32_t n = 3; n <= 20; n++)
        check_positions_and_successors(n, draws);
    check_positions_and_successors(64, draws);
}

/* Neighbours do not stay near each other among many ranks. */
static void many_ranks_are_scattered(void **state)
{
    const uint32_t n = 65536;
    struct permutation permutation = permutation_draw(n, 1, 1);
    uint32_t near = 0, fixed = 0, low = 0;

    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t here = permutation_at(&permutation, i);
        uint32_t next = permutation_at(&permutation, i + 1);
        uint32_t distance = here > next ? here - next : next - here;

        near += distance < n / 16;
        fixed += here == i;
        low += i < n / 2 && here < n / 2;
    }
    /* Probability 2/16 - 1/256: 7,936 expected, standard deviation about 83. */
    assert_in_range(near, 7936 - 500, 7936 + 500);
    assert_in_range(fixed, 0, 9);
    assert_in_range(low, 16384 - 400, 16384 + 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permutations_are_bijections),
        cmocka_unit_test(all_permutations_of_few_are_equally_likely),
        cmocka_unit_test(ranks_are_anywhere_equally_often),
        cmocka_unit_test(many_ranks_are_scattered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

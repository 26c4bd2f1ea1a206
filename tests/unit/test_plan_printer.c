/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Plans as they are printed: totals as a record, phases as numbers in memory.
 */
#include "documents.h"
#include "plan_printer.h"
#include "registry.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Prints the plan of a document to a file in place of standard output. */
static int print_to(int fd, const char *text, struct err *err)
{
    int kept = dup(STDOUT_FILENO), rc;
    struct document *document;
    struct records *records;

    assert_int_equal(
        document_parse(&document, &(struct mapping_text){text, strlen(text), 1}, transports, err),
        0);
    fflush(stdout);
    assert_true(dup2(fd, STDOUT_FILENO) >= 0);
    assert_int_equal(records_open(&records, fd, "node1", err), 0);
    rc = plan_print(records, document->plan, err);
    records_close(records);
    fflush(stdout);
    clearerr(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    document_free(document);
    return rc;
}

static FILE *print(const char *plan)
{
    char text[160];
    struct err err = {0};
    FILE *file = tmpfile();

    snprintf(text, sizeof text, "plan: {%s}\n", plan);
    assert_int_equal(print_to(fileno(file), text, &err), 0);
    rewind(file);
    return file;
}

/* Each phase as numbers in memory: its number, how many flows, its name, and their ends. */
static void every_flow_is_listed(void **state)
{
    static const struct {
        const char *plan;
        uint32_t phases, first, flows_each;
        const char *name; /* of the first phase */
        bool forwards;    /* some flow of the first phase */
    } listings[] = {
        {"ranks: 301, pattern: {name: aapc, order: pairwise}", 301, 0, 300, "round 1", false},
        {"ranks: 65536, pattern: {name: pairs, partners: halves}", 1, 0, 65536, "", false},
        {"ranks: 1000, pattern: {name: pairs, partners: list, list: [0, 999]}", 1, 0, 2, "", false},
        {"ranks: 8, pattern: {name: aapc, order: shift}, phases: [5, 1]", 2, 5, 8, "distance 6",
         false},
        {"ranks: 8, pattern: {name: chain, forward: true}", 1, 0, 7, "", true},
    };

    for (size_t i = 0; i < sizeof listings / sizeof listings[0]; i++) {
        FILE *file = print(listings[i].plan);
        uint32_t phases = 0, head[2], ends[2];
        char name[64];

        for (; fread(head, sizeof head, 1, file) == 1; phases++) {
            bool forwards = false;

            assert_int_equal(fread(name, sizeof name, 1, file), 1);
            for (uint32_t flow = 0; flow < head[1]; flow++) {
                assert_int_equal(fread(ends, sizeof ends, 1, file), 1);
                forwards |= ends[0] >> 31;
                assert_int_not_equal(ends[0] & INT32_MAX, ends[1]);
            }
            assert_int_equal(head[1], listings[i].flows_each);
            if (phases > 0)
                continue;
            assert_int_equal(head[0], listings[i].first);
            assert_int_equal(forwards, listings[i].forwards);
            if (*listings[i].name)
                assert_string_equal(name, listings[i].name);
        }
        assert_int_equal(phases, listings[i].phases);
        fclose(file);
    }
}

static int64_t number(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static json_t *headline_of(const char *pattern)
{
    char plan[128];
    FILE *file;
    json_t *headline;

    snprintf(plan, sizeof plan, "ranks: 4, pattern: {%s}, totals_only: true", pattern);
    file = print(plan);
    headline = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(headline);
    fclose(file);
    return headline;
}

/* Four ranks, 400 bytes: a ring of 6 steps in which all send a quarter. */
static void a_schedule_is_summed_up(void **state)
{
    static const struct {
        const char *key;
        int64_t value;
    } sums[] = {{"steps", 6},    {"messages", 24},        {"bytes", 2400},
                {"memory", 800}, {"memory_all", 4 * 800}, {"iterations", 0}};
    json_t *ring = headline_of("name: allreduce, algorithm: ring, bytes: 400");
    json_t *kernel = headline_of("name: nas_lu, class: B"), *chain = headline_of("name: chain");

    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        assert_int_equal(number(json_object_get(ring, "schedule"), sums[i].key), sums[i].value);
    assert_int_equal(number(json_object_get(kernel, "schedule"), "iterations"), 250);
    assert_true(json_is_null(json_object_get(chain, "schedule")));
    assert_int_equal(number(chain, "flows"), 3);
    json_decref(chain);
    json_decref(kernel);
    json_decref(ring);
}

static void what_can_not_be_printed_is_said(void **state)
{
    static const struct {
        const char *text, *file, *words;
    } cases[] = {
        {"plan: {ranks: 8, pattern: {name: aapc, order: shift}, phases: [7]}\n", "/dev/null",
         "the plan has phases 0 to 6"},
        {"plan: {ranks: 8, pattern: {name: apac}}\n", "/dev/null", "apac"},
        {"plan: {ranks: 301, pattern: {name: aapc, order: pairwise}}\n", "/dev/full",
         "can't be written"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = open(cases[i].file, O_WRONLY | O_CLOEXEC);
        struct err err = {0};

        if (fd < 0)
            continue;
        assert_true(print_to(fd, cases[i].text, &err) < 0);
        assert_non_null(strstr(err.text, cases[i].words));
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flow_is_listed),
        cmocka_unit_test(a_schedule_is_summed_up),
        cmocka_unit_test(what_can_not_be_printed_is_said),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

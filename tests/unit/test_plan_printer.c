/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Plans as records: every flow once, a phase in a record.
 */
#include "document_reader.h"
#include "plan_printer.h"
#include "registry.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static FILE *print(const char *text)
{
    struct document *document;
    struct records *records;
    struct err err = {0};
    FILE *lines = tmpfile();

    assert_non_null(lines);
    assert_int_equal(
        document_parse(&document, &(struct mapping_text){text, strlen(text), 1}, transports, &err),
        0);
    assert_int_equal(
        records_open(&records, fileno(lines), "node-with-a-name-of-32-characters", &err), 0);
    assert_int_equal(plan_print(records, document->plan, &err), 0);
    records_close(records);
    document_free(document);
    rewind(lines);
    return lines;
}

static int64_t number(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

/* The next record; NULL: end. */
static json_t *next(FILE *lines)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size = getline(&line, &room, lines);
    json_t *record = NULL;

    if (size > 0) {
        record = json_loads(line, 0, NULL);
        assert_non_null(record);
    }
    free(line);
    return record;
}

/* What a plan's records have to say. */
static const struct listing {
    const char *document;
    int64_t flows;  /* of the headline */
    int64_t phases; /* listed */
    int64_t first;  /* ... of them, its number */
    int64_t flows_each;
    int64_t idle; /* in all phases */
} listings[] = {
    {"ranks: 301, pattern: {name: aapc, order: pairwise}, seed: 1", 301 * 300, 301, 0, 300, 301},
    {"ranks: 65536, pattern: {name: pairs, partners: halves}, seed: 1", 65536, 1, 0, 65536, 0},
    {"ranks: 1000, pattern: {name: pairs, partners: list, list: [0, 999]}", 2, 1, 0, 2, 998},
    {"ranks: 8, pattern: {name: aapc, order: shift}, phases: [5, 1]", 56, 2, 5, 8, 0},
    {"ranks: 8, pattern: {name: aapc, order: shift}, totals_only: true", 56, 0, 0, 0, 0},
};

static void every_flow_is_listed_once(void **state)
{
    for (size_t i = 0; i < sizeof(listings) / sizeof(listings[0]); i++) {
        const struct listing *expected = &listings[i];
        char text[128];
        FILE *lines;
        json_t *headline, *record;
        int64_t phases = 0, idle = 0;

        snprintf(text, sizeof text, "plan: {%s}\n", expected->document);
        lines = print(text);
        headline = next(lines);
        assert_int_equal(number(headline, "flows"), expected->flows);
        while ((record = next(lines)) != NULL) {
            if (phases++ == 0)
                assert_int_equal(number(record, "phase"), expected->first);
            assert_int_equal(json_array_size(json_object_get(record, "flows")),
                             expected->flows_each);
            idle += (int64_t)json_array_size(json_object_get(record, "idle"));
            json_decref(record);
        }
        assert_int_equal(phases, expected->phases);
        assert_int_equal(idle, expected->idle);
        json_decref(headline);
        fclose(lines);
    }
}

static json_t *headline_of(const char *pattern)
{
    char text[128];
    FILE *lines;
    json_t *headline;

    snprintf(text, sizeof text, "plan: {ranks: 4, pattern: {%s}, totals_only: true}\n", pattern);
    lines = print(text);
    headline = next(lines);
    fclose(lines);
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
    json_decref(chain);
    json_decref(kernel);
    json_decref(ring);
}

static void refused(const char *text, int fd, const char *words)
{
    struct document *document;
    struct records *records;
    struct err err = {0};

    assert_int_equal(
        document_parse(&document, &(struct mapping_text){text, strlen(text), 1}, transports, &err),
        0);
    assert_int_equal(records_open(&records, fd, "node1", &err), 0);
    assert_true(plan_print(records, document->plan, &err) < 0);
    assert_non_null(strstr(err.text, words));
    records_close(records);
    document_free(document);
}

static void what_can_not_be_printed_is_said(void **state)
{
    int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    refused("plan: {ranks: 8, pattern: {name: aapc, order: shift}, phases: [7]}\n", sink,
            "the plan has phases 0 to 6");
    refused("plan: {ranks: 8, pattern: {name: apac}}\n", sink, "apac");
    if (full >= 0)
        refused("plan: {ranks: 301, pattern: {name: aapc, order: pairwise}}\n", full,
                "can't be written");
    close(sink);
    if (full >= 0)
        close(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flow_is_listed_once),
        cmocka_unit_test(a_schedule_is_summed_up),
        cmocka_unit_test(what_can_not_be_printed_is_said),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

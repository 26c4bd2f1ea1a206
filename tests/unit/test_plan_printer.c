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
        document_parse(&document, &(struct document_text){text, strlen(text), 1}, transports, &err),
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

/* Reads one phase: how many flows; each idle rank is counted in `idle`. */
static int64_t read_phase(FILE *lines, int64_t phase, int64_t *idle)
{
    json_t *record = next(lines);
    int64_t flows;

    assert_non_null(record);
    assert_int_equal(number(record, "phase"), phase);
    flows = (int64_t)json_array_size(json_object_get(record, "flows"));
    *idle += (int64_t)json_array_size(json_object_get(record, "idle"));
    json_decref(record);
    return flows;
}

static void a_big_plan_is_whole(void **state)
{
    FILE *lines = print("plan: {ranks: 301, pattern: {name: aapc, order: pairwise}, seed: 1}\n");
    json_t *headline = next(lines);
    int64_t idle = 0;

    assert_int_equal(number(headline, "ranks"), 301);
    assert_int_equal(number(headline, "phases"), 301);
    assert_int_equal(number(headline, "flows"), 301 * 300);
    for (int64_t phase = 0; phase < 301; phase++)
        assert_int_equal(read_phase(lines, phase, &idle), 300);
    assert_int_equal(idle, 301);
    assert_null(next(lines));
    json_decref(headline);
    fclose(lines);
}

static void the_longest_numbers_fit(void **state)
{
    FILE *lines =
        print("plan: {ranks: 65536, pattern: {name: pairs, partners: halves}, seed: 1}\n");
    json_t *headline = next(lines);
    int64_t idle = 0;

    assert_int_equal(number(headline, "flows"), 65536);
    assert_int_equal(read_phase(lines, 0, &idle), 65536);
    assert_int_equal(idle, 0);
    assert_null(next(lines));
    json_decref(headline);
    fclose(lines);
}

static void idle_ranks_are_listed(void **state)
{
    FILE *lines = print("plan: {ranks: 1000, pattern: {name: pairs, partners: list, "
                        "list: [0, 999]}}\n");
    json_t *headline = next(lines);
    int64_t idle = 0;

    assert_int_equal(read_phase(lines, 0, &idle), 2);
    assert_int_equal(idle, 998);
    assert_null(next(lines));
    json_decref(headline);
    fclose(lines);
}

static void only_the_phases_asked_for(void **state)
{
    FILE *lines = print("plan: {ranks: 8, pattern: {name: aapc, order: shift}, phases: [5, 1]}\n");
    json_t *headline = next(lines);
    int64_t idle = 0;

    assert_int_equal(read_phase(lines, 5, &idle), 8);
    assert_int_equal(read_phase(lines, 1, &idle), 8);
    assert_null(next(lines));
    json_decref(headline);
    fclose(lines);
}

static void only_the_headline(void **state)
{
    FILE *lines =
        print("plan: {ranks: 8, pattern: {name: aapc, order: shift}, totals_only: true}\n");
    json_t *headline = next(lines);

    assert_int_equal(number(headline, "flows"), 56);
    assert_null(next(lines));
    json_decref(headline);
    fclose(lines);
}

/* Four ranks, 400 bytes: a ring of 6 steps in which all send a quarter. */
static void a_schedule_is_summed_up(void **state)
{
    FILE *lines = print("plan: {ranks: 4, pattern: {name: allreduce, algorithm: ring, bytes: 400},"
                        " totals_only: true}\n");
    json_t *headline = next(lines), *schedule = json_object_get(headline, "schedule");

    assert_int_equal(number(schedule, "steps"), 6);
    assert_int_equal(number(schedule, "messages"), 24);
    assert_int_equal(number(schedule, "bytes"), 2400);
    assert_int_equal(number(schedule, "memory"), 800);
    assert_int_equal(number(schedule, "memory_all"), 4 * 800);
    assert_int_equal(number(schedule, "iterations"), 0);
    json_decref(headline);
    fclose(lines);
    lines = print("plan: {ranks: 4, pattern: {name: nas_lu, class: B}, totals_only: true}\n");
    headline = next(lines);
    assert_int_equal(number(json_object_get(headline, "schedule"), "iterations"), 250);
    json_decref(headline);
    fclose(lines);
    lines = print("plan: {ranks: 4, pattern: {name: chain}, totals_only: true}\n");
    headline = next(lines);
    assert_true(json_is_null(json_object_get(headline, "schedule")));
    json_decref(headline);
    fclose(lines);
}

static void refused(const char *text, int fd, const char *words)
{
    struct document *document;
    struct records *records;
    struct err err = {0};

    assert_int_equal(
        document_parse(&document, &(struct document_text){text, strlen(text), 1}, transports, &err),
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
        cmocka_unit_test(a_big_plan_is_whole),
        cmocka_unit_test(the_longest_numbers_fit),
        cmocka_unit_test(idle_ranks_are_listed),
        cmocka_unit_test(only_the_phases_asked_for),
        cmocka_unit_test(only_the_headline),
        cmocka_unit_test(a_schedule_is_summed_up),
        cmocka_unit_test(what_can_not_be_printed_is_said),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The description of a modelled switch: what it means, what is refused and how.
 */
#include "describe.h"
#include "unit.h"

#define PORTS                                                                                      \
    "ports: [{name: a, rate_bps: 100000000, buffer: 4096, vdev: net_null0, iface: p1}, "           \
    "{name: b}]"

static int read_text(struct description *description, struct err *err, const char *keys)
{
    char text[2048], json[4096];

    snprintf(text, sizeof text, "{switch: {name: s, %s}}", keys);
    err->text[0] = '\0';
    return describe_read(description, unit_json(json, text), err);
}

/* A description with all keys, and one with none but its ports, which has the defaults. */
TEST(every_key_arrives)
{
    static const char keys[] =
        "seed: 7, mtu: 9000, sharing: shared, buffer: 500000, "
        "input_buffer: 9999, capacity: [{ports: 2, bps: 10}, {ports: 4, bps: 30}], "
        "collapse: {above_percent: 50, to_percent: 10, window_ms: 3}, "
        "table: {size: 9, learn_per_s: 8, ageing_ms: 7}, "
        "latency_ns: 1234, pause: {send: true, high: 9, low: 3}, "
        "flows: tags, poll: true, "
        "faults: [{kind: reorder, one_in: 100000, at_most: 3, in: a, out: b, measured: true, "
        "displacement: 4, hold_ms: 9}, "
        "{kind: wrong-port, to: b}, {kind: corrupt, first_byte: 14, last_byte: 31}, "
        "{kind: slow, port: b, rate_bps: 1000000}], " PORTS;
    struct description plain, full;
    const struct model_conf *a = &plain.conf, *b = &full.conf;
    struct err err;

    assert_int_equal(read_text(&plain, &err, PORTS), 0);
    if (read_text(&full, &err, keys) != 0)
        fail_msg("%s", err.text);
    const uint64_t rows[][4] = {
        /* of the plain one, of the other; expected */
        {a->port_count, b->port_count, 2, 2},
        {a->seed, b->seed, 0, 7},
        {a->mtu, b->mtu, 1500, 9000},
        {a->queueing, b->queueing, MODEL_OUTPUT, MODEL_OUTPUT},
        {a->shared, b->shared, false, true},
        {a->by_tag, b->by_tag, false, true},
        {plain.poll, full.poll, false, true},
        {a->buffer_bytes, b->buffer_bytes, 131072, 500000},
        {a->input_bytes, b->input_bytes, 131072, 9999},
        {a->capacity.step_count, b->capacity.step_count, 0, 2},
        {a->table.size, b->table.size, 8192, 9},
        {a->table.learn_per_s, b->table.learn_per_s, 0, 8},
        {a->table.ageing_ms, b->table.ageing_ms, 300000, 7},
        {(uint64_t)a->latency_ns, (uint64_t)b->latency_ns, 0, 1234},
        {a->collapse.window_ms, b->collapse.window_ms, 20, 3},
        {(uint64_t)a->collapse.recover, (uint64_t)b->collapse.recover, 0, 25},
        {a->pause.send, b->pause.send, false, true},
        {a->pause.low_bytes, b->pause.low_bytes, 32768, 3},
        {a->fault_count, b->fault_count, 0, 4},
        {a->ports[0].buffer_bytes, b->capacity.step[1].bps, 4096, 30},
        {a->ports[0].rate_bps, a->ports[1].rate_bps, 100000000, 0},
        {b->faults[0].kind, b->faults[0].one_in, MODEL_FAULT_REORDER, 100000},
        {b->faults[0].hold_ms, b->faults[2].hold_ms, 9, 20},
        {b->faults[0].measured, b->faults[2].measured, true, false},
        {b->faults[2].last_byte, b->faults[3].rate_bps, 31, 1000000},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (memcmp(rows[i], rows[i] + 2, 2 * sizeof **rows) != 0)
            fail_msg("row %zu: %llu, %llu", i, (unsigned long long)rows[i][0],
                     (unsigned long long)rows[i][1]);
    assert_string_equal(b->faults[1].to, "b");
    assert_string_equal(a->ports[0].iface, "p1");
    mapping_free(&full.memory);
    mapping_free(&plain.memory);
}

TEST_ROWS(each_mistake_is_one_sentence, "mistake")
{
    struct description description;
    struct err err;
    char keys[512];

    snprintf(keys, sizeof keys, "%s%s", row->fields[1],
             strcmp(row->fields[0], "ports") == 0 ? ", " PORTS : "");
    assert_int_equal(read_text(&description, &err, keys), -EINVAL);
    assert_says(err.text, row->fields[2]);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The description of a modelled switch: what it means, what is refused and how; and standard input,
 * in pieces.
 */
#include "command_reader.h"
#include "describe.h"
#include "unit.h"

#include <fcntl.h>
#include <sys/wait.h>

#define PORTS                                                                                      \
    "  ports: [{name: a, rate_bps: 100000000, buffer: 4096, vdev: net_null0, iface: p1}, "         \
    "{name: b}]\n"

static int read_text(struct description *description, struct err *err, const char *keys,
                     const char *ports)
{
    char yaml[4096];
    int size = snprintf(yaml, sizeof yaml, "switch:\n  name: s\n%s%s", keys, ports);

    err->text[0] = '\0';
    return describe_read(description, yaml, (size_t)size, err);
}

/* Beside a description that says nothing, whose keys have their defaults. */
TEST(test_every_key_arrives)
{
    static const char keys[] =
        "  seed: 7\n  mtu: 9000\n  sharing: shared\n  buffer: 500000\n"
        "  input_buffer: 9999\n  capacity: [{ports: 2, bps: 10}, {ports: 4, bps: 30}]\n"
        "  collapse: {above_percent: 50, to_percent: 10, window_ms: 3}\n"
        "  table: {size: 9, learn_per_s: 8, ageing_ms: 7}\n"
        "  latency_ns: 1234\n  pause: {send: true, high: 9, low: 3}\n"
        "  flows: tags\n  poll: true\n"
        "  faults:\n"
        "  - {kind: reorder, one_in: 100000, at_most: 3, in: a, out: b, measured: true, "
        "displacement: 4, hold_ms: 9}\n"
        "  - {kind: wrong-port, to: b}\n  - {kind: corrupt, first_byte: 14, last_byte: 31}\n"
        "  - {kind: slow, port: b, rate_bps: 1000000}\n";
    struct description plain, full;
    const struct model_conf *a = &plain.conf, *b = &full.conf;
    struct err err;

    assert_int_equal(read_text(&plain, &err, "", PORTS), 0);
    if (read_text(&full, &err, keys, PORTS) != 0)
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

TEST(test_mistakes_are_one_sentence)
{
    static const struct {
        const char *keys, *says;
    } cases[] = {
        {"  sed: 1\n" PORTS, "sed"},
        {"  seed: much\n" PORTS, "line"},
        {"  queueing: fifo\n" PORTS, "fifo"},
        {"  forwarding: store\n" PORTS, "forwarding"},
        {"  pause: {ignore: true}\n" PORTS, "ignore"},
        {"  pause: {send: true, high: 2, low: 2}\n" PORTS, "below high"},
        {"  table: {sizes: 1}\n" PORTS, "sizes"},
        {"  table: {size: 0}\n" PORTS, "size is 1 to 1048576"},
        {"  faults: [{kind: lost}]\n" PORTS, "lost"},
        {"  faults: [{kind: drop, in: c}]\n" PORTS, "no port 'c'"},
        {"  faults: [{kind: dead}]\n" PORTS, "needs a `port`"},
        {"  faults: [{kind: drop, port: a}]\n" PORTS, "`in` or `out`"},
        {"  faults: [{kind: slow, port: a}]\n" PORTS, "rate_bps"},
        {"  faults: [{kind: reorder}]\n" PORTS, "displacement"},
        {"  faults: [{kind: corrupt, last_byte: 3}]\n" PORTS, "addresses"},
        {"  mtu: 10000\n" PORTS, "mtu"},
        {"  recovery_ms: 4294967296\n" PORTS, "switch.recovery_ms is 0 to 4294967295"},
        {"  collapse: {above_percent: 50, to_percent: 0}\n" PORTS, "collapse"},
        {"  collapse: {above_percent: 50, to_percent: 9}\n  ports: [{name: a}, {name: b}]\n",
         "ports with a rate"},
        {"  queueing: voq\n  sharing: shared\n" PORTS, "shared memory"},
        {"  queueing: voq\n  capacity: [{bps: 9}]\n" PORTS, "a capacity"},
        {"  queueing: input\n  recovery_ms: 1\n" PORTS, "has to be output"},
        {"  capacity: [{ports: 8, bps: 1}, {ports: 4, bps: 2}]\n" PORTS, "ascend"},
        {"  ports: [{name: a}]\n", "has 2 to 64 entries"},
        {"  ports: [{name: a}, {name: a}]\n", "duplicate name"},
        {"  ports: [{name: b}, {name: a, rates: [{bps: 1}]}]\n", "a trunk's"},
        {"  ports: [{name: a, vlan: 1}, {name: b}]\n", "VLAN 1 has 1 ports: it takes two"},
        {"  ports: [{name: a, cable: b}, {name: b}]\n", "have to name each other"},
        {"  pause: {send: true}\n  ports: [{name: a, cable: b}, {name: b, cable: a}]\n", "PAUSE"},
        {"", "ports"},
    };

    for (EACH(c, cases)) {
        struct description description;
        struct err err;

        assert_int_equal(read_text(&description, &err, c->keys, ""), -EINVAL);
        if (strstr(err.text, c->says) == NULL)
            fail_msg("'%s' does not say '%s'", err.text, c->says);
        assert_null(strchr(err.text, '\n'));
    }
}

/* --- standard input --- */

TEST(test_a_description_in_pieces_then_commands)
{
    static const char text[] = "switch: {name: a...b}\n# ...\n....\n... \nreport\nclear\nrep";
    struct command_reader reader = {0};
    struct err err = {""};
    char *yaml;
    int ends[2];
    size_t size;

    assert_int_equal(pipe2(ends, O_NONBLOCK), 0); /* as a lab's, which is empty at first */
    if (fork() == 0) {
        usleep(10000);
        _exit(write(ends[1], text, sizeof text - 1) != sizeof text - 1);
    }
    reader.fd = ends[0];
    assert_int_equal(command_reader_description(&reader, &yaml, &size, &err), 0);
    wait(NULL);
    assert_int_equal(size, strlen("switch: {name: a...b}\n# ...\n....\n"));
    assert_memory_equal(yaml, text, size);
    assert_int_equal(command_reader_line(&reader, 0), 1);
    assert_string_equal(reader.line, "report");
    assert_int_equal(command_reader_line(&reader, 0), 1);
    assert_string_equal(reader.line, "clear");
    assert_int_equal(command_reader_line(&reader, 0), 0); /* half a line, and no end */
    assert_int_equal(write(ends[1], "ort\r\n", 5), 5);
    assert_int_equal(command_reader_line(&reader, 0), 1);
    assert_string_equal(reader.line, "report");
    close(ends[1]);
    assert_int_equal(command_reader_line(&reader, 0), -1);
    free(yaml);
    close(ends[0]);
}

TEST(test_a_description_without_an_end)
{
    char line[5001];

    memset(line, 'a', sizeof line);
    line[5000] = '\n';
    for (unsigned i = 0; i < 2; i++) {
        struct command_reader reader = {0};
        struct err err = {""};
        char *yaml;
        int ends[2];
        size_t size;

        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], i == 0 ? "switch: {}\n" : line, i == 0 ? 11 : 5001),
                         i == 0 ? 11 : 5001);
        close(ends[1]);
        reader.fd = ends[0];
        assert_int_equal(command_reader_description(&reader, &yaml, &size, &err), -EINVAL);
        assert_non_null(strstr(err.text, "'...'"));
        assert_int_equal(strstr(err.text, "longer") != NULL, i);
        free(yaml);
        close(ends[0]);
    }
}

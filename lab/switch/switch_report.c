/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_report.h"

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_RECORDS 8
#define LINES_FULL (1u << 16) /* so much waits before a report goes on */

/* --- lines --- */

void lines_open(struct lines *lines, int fd)
{
    *lines = (struct lines){.fd = fd};
}

static bool make_room(struct lines *lines, size_t size)
{
    size_t room = lines->room > 0 ? lines->room : LINES_FULL;
    char *text;

    while (room - lines->used < size)
        room *= 2;
    if (room == lines->room)
        return true;
    text = realloc(lines->text, room);
    if (text == NULL)
        return false;
    lines->text = text;
    lines->room = room;
    return true;
}

void lines_add(struct lines *lines, json_t *record)
{
    char *text = record != NULL ? json_dumps(record, JSON_COMPACT) : NULL;
    size_t size = text != NULL ? strlen(text) : 0;

    json_decref(record);
    if (text == NULL || lines->broken || !make_room(lines, size + 1)) {
        lines->broken = true;
    } else {
        memcpy(lines->text + lines->used, text, size);
        lines->used += size;
        lines->text[lines->used++] = '\n';
    }
    free(text);
}

void lines_flush(struct lines *lines)
{
    struct pollfd room = {.fd = lines->fd, .events = POLLOUT};

    while (lines->used > 0 && !lines->broken && poll(&room, 1, 0) == 1) {
        /* A pipe that is ready takes PIPE_BUF bytes without waiting, whatever its flags. */
        size_t size = lines->used < 4096 ? lines->used : 4096;
        ssize_t n = write(lines->fd, lines->text, size);

        if (n <= 0) {
            lines->broken = n < 0 && errno != EAGAIN && errno != EINTR;
            return;
        }
        lines->used -= (size_t)n;
        memmove(lines->text, lines->text + n, lines->used);
    }
}

bool lines_close(struct lines *lines, int64_t until_ns)
{
    struct pollfd room = {.fd = lines->fd, .events = POLLOUT};
    bool all;

    while (lines->used > 0 && !lines->broken && clock_now() < until_ns) {
        lines_flush(lines);
        if (lines->used > 0)
            (void)poll(&room, 1, 5);
    }
    all = lines->used == 0 && !lines->broken;
    free(lines->text);
    *lines = (struct lines){.fd = -1, .broken = true};
    return all;
}

/* --- a report --- */

struct snapshot {
    const char *reason;
    int64_t now_ns;
    uint64_t inside;
    uint32_t flow_count, wrong_count;
    struct model_flow *flows;
    struct model_flow *wrong;
    struct model_port_truth ports[MODEL_PORTS_MAX];
    uint64_t lost[MODEL_PORTS_MAX];
    struct model_counts total, rest;
    struct model_table_truth table;
    struct model_fault_truth *faults;
    uint32_t at; /* the next record */
};

static void add_counts(struct model_counts *to, const struct model_counts *from)
{
    const uint64_t *source = (const uint64_t *)from;
    uint64_t *target = (uint64_t *)to;

    static_assert(sizeof *to % sizeof *target == 0, "counts are all of one kind");
    for (size_t i = 0; i < sizeof *to / sizeof *target; i++)
        target[i] += source[i];
}

static void free_snapshot(struct snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    free(snapshot->flows);
    free(snapshot->wrong);
    free(snapshot->faults);
    free(snapshot);
}

static struct snapshot *take_snapshot(const struct switch_report *report)
{
    const struct port_array *port_array = report->port_array;
    unsigned faults = report->description->conf.fault_count;
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);

    if (snapshot == NULL)
        return NULL;
    snapshot->flow_count = model_flow_count(port_array->model);
    snapshot->flows = calloc(snapshot->flow_count + 1, sizeof *snapshot->flows);
    snapshot->wrong_count = model_wrong_count(port_array->model);
    snapshot->wrong = calloc(snapshot->wrong_count + 1, sizeof *snapshot->wrong);
    snapshot->faults = calloc(faults + 1, sizeof *snapshot->faults);
    if (snapshot->flows == NULL || snapshot->wrong == NULL || snapshot->faults == NULL) {
        free_snapshot(snapshot);
        return NULL;
    }
    for (uint32_t i = 0; i < snapshot->flow_count; i++) {
        snapshot->flows[i] = *model_flow(port_array->model, i);
        add_counts(&snapshot->total, &snapshot->flows[i].counts);
    }
    snapshot->rest = model_rest(port_array->model)->counts;
    add_counts(&snapshot->total, &snapshot->rest);
    for (uint32_t i = 0; i < snapshot->wrong_count; i++)
        snapshot->wrong[i] = *model_wrong(port_array->model, i);
    for (unsigned i = 0; i < port_array->count; i++) {
        snapshot->ports[i] = model_port_truth(port_array->model, i);
        snapshot->lost[i] = port_array->ports[i].lost;
    }
    for (unsigned i = 0; i < faults; i++)
        snapshot->faults[i] = model_fault_truth(port_array->model, i);
    snapshot->table = model_table_truth(port_array->model);
    snapshot->inside = model_inside(port_array->model);
    snapshot->now_ns = clock_now();
    return snapshot;
}

/* --- records --- */

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *record(const struct switch_report *report, const char *type)
{
    json_t *object = json_object();

    json_object_set_new(object, "type", json_string(type));
    json_object_set_new(object, "switch", json_string(report->description->text->name));
    if (report->number > 0)
        json_object_set_new(object, "report", count(report->number));
    return object;
}

static json_t *drops(const uint64_t *dropped)
{
    json_t *object = json_object();

    for (unsigned i = 0; i < MODEL_DROPS; i++)
        json_object_set_new(object, model_drop_names[i], count(dropped[i]));
    return object;
}

/* A key of a record, and where its count is in the structure that the record shows. */
struct counter {
    const char *key;
    size_t offset;
};

static void set_counters(json_t *object, const struct counter *counters, const void *source)
{
    for (; counters->key != NULL; counters++) {
        uint64_t value;

        memcpy(&value, (const char *)source + counters->offset, sizeof value);
        json_object_set_new(object, counters->key, count(value));
    }
}

#define COUNTER(type, member)                                                                      \
    {                                                                                              \
#member, _Generic(((struct type *)0)->member, uint64_t : offsetof(struct type, member))    \
    }

static void set_counts(json_t *object, const struct model_counts *counts)
{
    static const struct counter counters[] = {
        COUNTER(model_counts, received),     COUNTER(model_counts, received_bytes),
        COUNTER(model_counts, delivered),    COUNTER(model_counts, delivered_bytes),
        COUNTER(model_counts, astray),       COUNTER(model_counts, copies),
        COUNTER(model_counts, flooded),      COUNTER(model_counts, duplicated),
        COUNTER(model_counts, reordered),    COUNTER(model_counts, corrupted),
        COUNTER(model_counts, misdelivered), {NULL, 0},
    };

    set_counters(object, counters, counts);
    json_object_set_new(object, "dropped", drops(counts->dropped));
}

static json_t *address(uint64_t mac)
{
    char text[18];

    snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", (unsigned)(mac >> 40 & 0xff),
             (unsigned)(mac >> 32 & 0xff), (unsigned)(mac >> 24 & 0xff),
             (unsigned)(mac >> 16 & 0xff), (unsigned)(mac >> 8 & 0xff), (unsigned)(mac & 0xff));
    return json_string(text);
}

/* A port's name; null: flooded. */
static json_t *port_name(const struct switch_report *report, unsigned port)
{
    return port < report->port_array->count ? json_string(report->description->ports[port].name)
                                            : json_null();
}

/* Begins a record about a flow: whose it is. */
static json_t *named_record(const struct switch_report *report, const char *type,
                            const struct model_flow *flow)
{
    struct model_flow_name name = model_flow_name(flow);
    json_t *object = record(report, type);

    json_object_set_new(object, "source", address(name.source));
    json_object_set_new(object, "destination", address(name.destination));
    json_object_set_new(object, "in", port_name(report, name.in));
    json_object_set_new(object, "out", port_name(report, name.out));
    json_object_set_new(object, "tag", name.tagged ? count(name.tag) : json_null());
    return object;
}

static json_t *flow_record(const struct switch_report *report, uint32_t index)
{
    const struct model_flow *flow = &report->snapshot->flows[index];
    json_t *object = named_record(report, "flow", flow);

    set_counts(object, &flow->counts);
    return object;
}

static json_t *wrong_record(const struct switch_report *report, uint32_t index)
{
    const struct model_flow *flow = &report->snapshot->wrong[index];
    json_t *object = named_record(report, "wrong", flow);

    json_object_set_new(object, "misdelivered", count(flow->counts.misdelivered));
    return object;
}

static json_t *port_record(const struct switch_report *report, uint32_t index)
{
    static const struct counter counters[] = {
        COUNTER(model_port_truth, received),
        COUNTER(model_port_truth, received_bytes),
        COUNTER(model_port_truth, sent),
        COUNTER(model_port_truth, sent_bytes),
        COUNTER(model_port_truth, pause_sent),
        COUNTER(model_port_truth, pause_received),
        COUNTER(model_port_truth, control_received),
        COUNTER(model_port_truth, queue_high_bytes),
        COUNTER(model_port_truth, input_high_bytes),
        {NULL, 0},
    };
    const struct model_port_truth *port = &report->snapshot->ports[index];
    json_t *object = record(report, "port");

    json_object_set_new(object, "port", port_name(report, index));
    set_counters(object, counters, port);
    json_object_set_new(object, "dropped", drops(port->dropped));
    json_object_set_new(object, "lost_before", count(report->snapshot->lost[index]));
    return object;
}

static json_t *fault_record(const struct switch_report *report, uint32_t index)
{
    static const struct counter counters[] = {
        COUNTER(model_fault_truth, fitting), COUNTER(model_fault_truth, struck), {NULL, 0}};
    json_t *object = record(report, "fault");

    json_object_set_new(object, "fault", count(index));
    json_object_set_new(
        object, "kind",
        json_string(model_fault_names[report->description->conf.faults[index].kind]));
    set_counters(object, counters, &report->snapshot->faults[index]);
    return object;
}

static json_t *table_record(const struct switch_report *report, uint32_t index)
{
    static const struct counter counters[] = {
        COUNTER(model_table_truth, entries),
        COUNTER(model_table_truth, learned),
        COUNTER(model_table_truth, moved),
        COUNTER(model_table_truth, aged),
        COUNTER(model_table_truth, refused_full),
        COUNTER(model_table_truth, refused_rate),
        {NULL, 0},
    };
    json_t *object = record(report, "table");

    (void)index;
    set_counters(object, counters, &report->snapshot->table);
    return object;
}

static json_t *total_record(const struct switch_report *report, uint32_t index)
{
    const struct snapshot *snapshot = report->snapshot;
    json_t *object = record(report, "total");

    (void)index;
    json_object_set_new(object, "reason", json_string(snapshot->reason));
    json_object_set_new(object, "seconds",
                        json_real((double)(snapshot->now_ns - report->began_ns) / 1e9));
    json_object_set_new(object, "inside", count(snapshot->inside));
    json_object_set_new(object, "flows_complete", json_boolean(snapshot->rest.received == 0));
    set_counts(object, &snapshot->total);
    return object;
}

/* In the order in which they are written; the last says that the report is whole. */
static json_t *next_record(const struct switch_report *report)
{
    const struct snapshot *snapshot = report->snapshot;
    const struct {
        uint32_t count;
        json_t *(*make)(const struct switch_report *report, uint32_t index);
    } sections[] = {
        {report->port_array->count, port_record},
        {snapshot->flow_count, flow_record},
        {snapshot->wrong_count, wrong_record},
        {report->description->conf.fault_count, fault_record},
        {1, table_record},
        {1, total_record},
    };
    uint32_t at = snapshot->at;

    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        if (at < sections[i].count)
            return sections[i].make(report, at);
        at -= sections[i].count;
    }
    return NULL;
}

bool switch_report_step(struct switch_report *report, struct lines *lines)
{
    for (unsigned i = 0; i < STEP_RECORDS && report->snapshot != NULL; i++) {
        json_t *object;

        if (lines->used > LINES_FULL)
            return false;
        object = next_record(report);
        report->snapshot->at++;
        if (object != NULL) {
            lines_add(lines, object);
            continue;
        }
        free_snapshot(report->snapshot);
        report->snapshot = NULL;
    }
    return report->snapshot == NULL;
}

void switch_report_begin(struct switch_report *report, const char *reason)
{
    report->number++;
    report->snapshot = take_snapshot(report);
    if (report->snapshot != NULL)
        report->snapshot->reason = reason;
}

void switch_report_ready(const struct switch_report *report, struct lines *lines)
{
    json_t *object = record(report, "ready"), *ports = json_array();

    for (unsigned i = 0; i < report->port_array->count; i++)
        json_array_append_new(ports, port_name(report, i));
    json_object_set_new(object, "ports", ports);
    json_object_set_new(object, "seed", count(report->description->conf.seed));
    json_object_set_new(object, "pid", count((uint64_t)getpid()));
    json_object_set_new(object, "version", json_string(SWITCHBENCH_VERSION));
    lines_add(lines, object);
}

void switch_report_open(struct switch_report *report, const struct port_array *port_array,
                        const struct description *description)
{
    *report = (struct switch_report){
        .port_array = port_array, .description = description, .began_ns = clock_now()};
}

void switch_report_close(struct switch_report *report)
{
    free_snapshot(report->snapshot);
    report->snapshot = NULL;
}

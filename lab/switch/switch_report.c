/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_report.h"

#include "clock.h"
#include "log.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- records --- */

static void add_counts(struct model_counts *to, const struct model_counts *from)
{
    const uint64_t *source = (const uint64_t *)from;
    uint64_t *target = (uint64_t *)to;

    static_assert(sizeof *to % sizeof *target == 0, "counts are all of one kind");
    for (size_t i = 0; i < sizeof *to / sizeof *target; i++)
        target[i] += source[i];
}

static void put(json_t *record)
{
    json_dumpf(record, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(record);
}

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

static void put_flow(const struct switch_report *report, const struct model_flow *flow)
{
    json_t *object = named_record(report, "flow", flow);

    set_counts(object, &flow->counts);
    put(object);
}

static void put_wrong(const struct switch_report *report, const struct model_flow *flow)
{
    json_t *object = named_record(report, "wrong", flow);

    json_object_set_new(object, "misdelivered", count(flow->counts.misdelivered));
    put(object);
}

static void put_port(const struct switch_report *report, unsigned index)
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
    struct model_port_truth truth = model_port_truth(report->port_array->model, index);
    json_t *object = record(report, "port");

    json_object_set_new(object, "port", port_name(report, index));
    set_counters(object, counters, &truth);
    json_object_set_new(object, "dropped", drops(truth.dropped));
    json_object_set_new(object, "lost_before", count(report->port_array->ports[index].lost));
    put(object);
}

static void put_fault(const struct switch_report *report, unsigned index)
{
    struct model_fault_truth truth = model_fault_truth(report->port_array->model, index);
    enum model_fault_kind kind = report->description->conf.faults[index].kind;
    json_t *object = record(report, "fault");

    json_object_set_new(object, "fault", count(index));
    json_object_set_new(object, "kind", json_string(model_fault_names[kind]));
    json_object_set_new(object, "fitting", count(truth.fitting));
    json_object_set_new(object, "struck", count(truth.struck));
    put(object);
}

static void put_table(const struct switch_report *report)
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
    struct model_table_truth truth = model_table_truth(report->port_array->model);
    json_t *object = record(report, "table");

    set_counters(object, counters, &truth);
    put(object);
}

/* The last of a report: it says that the report is whole. */
static void put_total(const struct switch_report *report, const char *reason,
                      const struct model_counts *total)
{
    const struct model *model = report->port_array->model;
    json_t *object = record(report, "total");

    json_object_set_new(object, "reason", json_string(reason));
    json_object_set_new(object, "seconds",
                        json_real((double)(clock_now() - report->began_ns) / 1e9));
    json_object_set_new(object, "inside", count(model_inside(model)));
    json_object_set_new(object, "flows_complete",
                        json_boolean(model_rest(model)->counts.received == 0));
    set_counts(object, total);
    put(object);
}

static void put_all(const struct switch_report *report, const char *reason)
{
    const struct model *model = report->port_array->model;
    struct model_counts total = model_rest(model)->counts;

    for (unsigned i = 0; i < report->port_array->count; i++)
        put_port(report, i);
    for (unsigned i = 0; i < model_flow_count(model); i++) {
        put_flow(report, model_flow(model, i));
        add_counts(&total, &model_flow(model, i)->counts);
    }
    for (unsigned i = 0; i < model_wrong_count(model); i++)
        put_wrong(report, model_wrong(model, i));
    for (unsigned i = 0; i < report->description->conf.fault_count; i++)
        put_fault(report, i);
    put_table(report);
    put_total(report, reason, &total);
}

/* --- reports --- */

void switch_report_begin(struct switch_report *report, const char *reason)
{
    report->number++;
    report->status = -1;
    report->writer = fork();
    if (report->writer < 0)
        log_warning("there is no report: %s", strerror(errno));
    if (report->writer != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    put_all(report, reason);
    _exit(fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1);
}

bool switch_report_done(struct switch_report *report)
{
    if (report->writer > 0 && waitpid(report->writer, &report->status, WNOHANG) == 0)
        return false;
    report->writer = 0;
    return true;
}

bool switch_report_end(struct switch_report *report, const char *reason, int64_t until_ns)
{
    while (!switch_report_done(report) && clock_now() < until_ns)
        clock_sleep_until(clock_now() + NS_PER_MS);
    if (report->writer == 0)
        switch_report_begin(report, reason);
    while (!switch_report_done(report)) {
        if (clock_now() >= until_ns)
            kill(report->writer, SIGKILL);
        clock_sleep_until(clock_now() + NS_PER_MS);
    }
    return report->status == 0;
}

void switch_report_open(struct switch_report *report, const struct port_array *port_array,
                        const struct description *description)
{
    json_t *ready, *ports = json_array();

    *report = (struct switch_report){
        .port_array = port_array, .description = description, .began_ns = clock_now()};
    ready = record(report, "ready");
    for (unsigned i = 0; i < port_array->count; i++)
        json_array_append_new(ports, port_name(report, i));
    json_object_set_new(ready, "ports", ports);
    json_object_set_new(ready, "seed", count(description->conf.seed));
    json_object_set_new(ready, "pid", count((uint64_t)getpid()));
    json_object_set_new(ready, "version", json_string(SWITCHBENCH_VERSION));
    put(ready);
    fflush(stdout);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_report.h"

#include "clock.h"
#include "log.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- records --- */

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* Write a record of a given type with the keys and values of `own`, and release `own`. */
static void put(const struct switch_report *report, const char *type, json_t *own)
{
    json_t *record = json_pack("{s:s, s:s}", "type", type, "switch", report->description->name);

    if (report->number > 0)
        json_object_set_new(record, "report", count(report->number));
    json_object_update_new(record, own);
    json_dumpf(record, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(record);
}

/* Return a JSON object with the number of dropped frames by reason. */
static json_t *drops(const uint64_t *dropped)
{
    json_t *object = json_object();

    for (unsigned i = 0; i < MODEL_DROPS; i++)
        json_object_set_new(object, model_drop_names[i], count(dropped[i]));
    return object;
}

#define COUNT(member) #member, (json_int_t)of->member

static json_t *flow_counts(const struct model_counts *of)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
                     COUNT(received), COUNT(received_bytes), COUNT(delivered),
                     COUNT(delivered_bytes), COUNT(astray), COUNT(copies), COUNT(flooded),
                     COUNT(duplicated), COUNT(reordered), COUNT(corrupted), COUNT(misdelivered),
                     "dropped", drops(of->dropped));
}

static json_t *address(uint64_t mac)
{
    char text[18];

    snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", (unsigned)(mac >> 40 & 0xff),
             (unsigned)(mac >> 32 & 0xff), (unsigned)(mac >> 24 & 0xff),
             (unsigned)(mac >> 16 & 0xff), (unsigned)(mac >> 8 & 0xff), (unsigned)(mac & 0xff));
    return json_string(text);
}

/* Return a port's name as JSON; null for the output of a flooded frame. */
static json_t *port_name(const struct switch_report *report, unsigned port)
{
    return port < report->port_array->count
               ? json_string(report->description->conf.ports[port].name)
               : json_null();
}

/* Return a JSON object with the keys that identify a flow in a record. */
static json_t *flow_items(const struct switch_report *report, const struct model_flow *flow)
{
    struct model_flow_name name = model_flow_name(flow);

    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "source", address(name.source), "destination",
                     address(name.destination), "in", port_name(report, name.in), "out",
                     port_name(report, name.out), "tag",
                     name.tagged ? count(name.tag) : json_null());
}

static void put_ports(const struct switch_report *report, const struct model_truth *truth)
{
    for (unsigned i = 0; i < report->port_array->count; i++) {
        const struct model_port_truth *of = &truth->ports[i];

        put(report, "port",
            json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "port",
                      port_name(report, i), "lost_before", count(report->port_array->ports[i].lost),
                      COUNT(received), COUNT(received_bytes), COUNT(sent), COUNT(sent_bytes),
                      COUNT(pause_sent), COUNT(pause_received), COUNT(control_received), "dropped",
                      drops(of->dropped)));
    }
}

/* Write a record per flow, and add the flows' counts to the total. */
static void put_flows(const struct switch_report *report, const struct model_truth *truth,
                      struct model_counts *total)
{
    static_assert(sizeof *total % sizeof(uint64_t) == 0, "counts are all of one kind");
    for (unsigned i = 0; i < truth->flow_count; i++) {
        const struct model_counts *counts = &truth->flows[i].counts;
        json_t *items = flow_items(report, &truth->flows[i]);

        json_object_update_new(items, flow_counts(counts));
        put(report, "flow", items);
        for (size_t k = 0; k < sizeof *total / sizeof(uint64_t); k++)
            ((uint64_t *)total)[k] += ((const uint64_t *)counts)[k];
    }
    for (unsigned i = 0; i < truth->wrong_count; i++) {
        json_t *items = flow_items(report, &truth->wrong[i]);

        json_object_set_new(items, "misdelivered", count(truth->wrong[i].counts.misdelivered));
        put(report, "wrong", items);
    }
}

/* Write all records of a report; the total comes last and marks the report as complete. */
static void put_all(const struct switch_report *report, const char *reason)
{
    const struct model_conf *conf = &report->description->conf;
    struct model_truth truth = model_truth(report->port_array->model);
    const struct model_table_truth *of = truth.table;
    struct model_counts total = truth.rest->counts;
    json_t *items;

    put_ports(report, &truth);
    put_flows(report, &truth, &total);
    for (unsigned i = 0; i < conf->fault_count; i++)
        put(report, "fault",
            json_pack("{s:i, s:s, s:I, s:I}", "fault", (int)i, "kind",
                      model_fault_names[conf->faults[i].kind], "fitting",
                      (json_int_t)truth.faults[i].fitting, "struck",
                      (json_int_t)truth.faults[i].struck));
    put(report, "table",
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", COUNT(entries), COUNT(learned), COUNT(moved),
                  COUNT(aged), COUNT(refused_full), COUNT(refused_rate)));
    items = json_pack("{s:s, s:f, s:I, s:b}", "reason", reason, "seconds",
                      (double)(clock_now() - report->began_ns) / 1e9, "inside",
                      (json_int_t)truth.inside, "flows_complete", truth.rest->counts.received == 0);
    json_object_update_new(items, flow_counts(&total));
    put(report, "total", items);
}

/* --- reports --- */

void switch_report_begin(struct switch_report *report, const char *reason)
{
    report->number++;
    report->status = -1;
    report->writer = fork();
    if (report->writer < 0)
        log_warning("can't start a process for a report, which is skipped: %s", strerror(errno));
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
    json_t *ports = json_array();

    *report = (struct switch_report){
        .port_array = port_array, .description = description, .began_ns = clock_now()};
    for (unsigned i = 0; i < port_array->count; i++)
        json_array_append_new(ports, port_name(report, i));
    put(report, "ready",
        json_pack("{s:o, s:I, s:i, s:s}", "ports", ports, "seed",
                  (json_int_t)description->conf.seed, "pid", (int)getpid(), "version",
                  SWITCHBENCH_VERSION));
    fflush(stdout);
}

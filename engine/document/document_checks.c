/* SPDX-License-Identifier: BSD-3-Clause */
#include "document_checks.h"

#include "clock.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#define INTERVAL_MIN_NS (10 * NS_PER_MS)
#define PROBE_FPS_MAX 1e6 /* beyond that they are a load */

#define RUN_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

/* One rule: whether it is broken, the sentence that says so, and the value that breaks it, or NONE.
 * A table ends with a rule without sentence. */
struct rule {
    bool broken;
    const char *sentence;
    double value;
};
#define NONE NAN
#define RULES_END                                                                                  \
    {                                                                                              \
        false, NULL, NONE                                                                          \
    }

/* 0, or -EINVAL with the sentence of the first rule of a trial that is broken. */
static int check_rules(const struct rule *rules, uint32_t trial, struct err *err)
{
    while (rules->sentence != NULL && !rules->broken)
        rules++;
    if (rules->sentence == NULL)
        return 0;
    if (isnan(rules->value))
        return err_set(err, -EINVAL, "trial %u: %s", trial, rules->sentence);
    return err_set(err, -EINVAL, "trial %u: %s, not %.15g", trial, rules->sentence, rules->value);
}

int check_job(const struct doc_job *job, struct err *err)
{
    const struct clock_conf *clock = &job->clock;

    if (job->protocol != NODE_PROTOCOL)
        return err_set(err, -EINVAL,
                       "job.protocol is %u, this switchbench-node speaks %u: use the same version "
                       "everywhere",
                       job->protocol, NODE_PROTOCOL);
    if (job->run[0] == '\0' || strlen(job->run) > 64 ||
        strspn(job->run, RUN_LETTERS) != strlen(job->run))
        return err_set(err, -EINVAL,
                       "job.run must be 1 to 64 letters, digits, '-', '.' or '_', not '%s'",
                       job->run);
    if (clock->error_ns > 0 && clock->mode != CLOCK_PTP)
        return err_set(err, -EINVAL, "job.clock: error_ns goes with ptp");
    return 0;
}

/* What a step of a schedule sends goes as fast as it can: it has no load. */
static int check_load(const struct doc_trial *trial, const struct doc_load *load, struct err *err)
{
    const char *load_of = trial->pattern.load_of;
    bool divided = load_of != NULL && strcmp(load_of, "receivers") == 0;
    const struct rule rules[] = {
        {(load->percent > 0) + (load->bps > 0) + (load->fps > 0) != 1,
         "load needs exactly one of percent, bps and fps, above 0", NONE},
        {load->percent > 100 && !divided, "a load of more than 100 % is more than the line carries",
         NONE},
        RULES_END,
    };

    return trial->traffic == TRAFFIC_SCHEDULE ? 0 : check_rules(rules, trial->id, err);
}

/* How long a phase lasts is known only when it is over. */
static bool has_no_length(const struct doc_trial *trial)
{
    return trial->traffic == TRAFFIC_TRANSFER ||
           (trial->has_pingpong && trial->pingpong.count > 0) ||
           (trial->has_burst && trial->burst.count > 0);
}

int check_trial(const struct doc_trial *trial, struct err *err)
{
    const struct pingpong_options *pingpong = &trial->pingpong;
    const struct schedule_options *schedule = &trial->schedule;
    bool stream = trial->traffic == TRAFFIC_STREAM, pingpongs = trial->traffic == TRAFFIC_PINGPONG,
         schedules = trial->traffic == TRAFFIC_SCHEDULE, bursts = trial->traffic == TRAFFIC_BURST;
    bool endless = trial->window_ns == 0;
    const struct rule rules[] = {
        {trial->sizes_count == 0 && !schedules, "sizes are missing", NONE},
        {trial->interval_ns != 0 && trial->interval_ns < INTERVAL_MIN_NS,
         "interval_ns is 10 ms to 30 days, or 0 for none", NONE},
        {trial->has_latency && trial->latency.probe_fps > PROBE_FPS_MAX,
         "probe_fps is 0 to 1e+06 a second and flow", trial->latency.probe_fps},
        {stream && endless, "a stream needs a window_ns above 0", NONE},
        {trial->traffic == TRAFFIC_TRANSFER && trial->transfer_bytes == 0,
         "a transfer needs transfer_bytes above 0", NONE},
        {trial->by_clock && has_no_length(trial),
         "phases that follow the clock (sync: none) have a fixed length; a transfer or a count of "
         "messages or bursts has none: use sync: barrier",
         NONE},
        {pingpongs && pingpong->count == 0 && endless,
         "ping-pong needs a count or a window_ns above 0", NONE},
        {pingpong->max_size < pingpong->min_size ||
             (pingpong->max_size > 0 && pingpong->min_size == 0),
         "random sizes are from min_size, above 0, to max_size, no less than that", NONE},
        {pingpong->samples && (pingpong->count == 0 || pingpong->count > PINGPONG_SAMPLES_MAX),
         "single times are kept of a count from 1 to 10000000", (double)pingpong->count},
        {trial->compute > 1, "compute is a share from 0 to 1", trial->compute},
        {pingpongs && trial->pattern.forward,
         "a chain that forwards sends nothing back: leave forward out", NONE},
        {schedules && schedule->count == 0 && endless,
         "a schedule needs a count or a window_ns above 0", NONE},
        {schedules && trial->by_clock,
         "the ranks of a schedule wait for each other: leave sync: none out", NONE},
        {bursts && !trial->has_burst, "traffic: burst needs burst, with the frames of one", NONE},
        {bursts && trial->burst.count == 0 && endless, "bursts need a count or a window_ns above 0",
         NONE},
        {trial->has_pingpong && !pingpongs, "pingpong needs traffic: pingpong", NONE},
        {trial->has_schedule && !schedules, "schedule needs traffic: schedule", NONE},
        {trial->has_burst && !bursts, "burst needs traffic: burst", NONE},
        RULES_END,
    };
    int rc = check_load(trial, &trial->load, err);

    static_assert(PINGPONG_SAMPLES_MAX == 10000000, "as the sentence says");
    for (unsigned i = 0; i < trial->parts_count && rc == 0; i++)
        rc = trial->parts[i].load != NULL ? check_load(trial, trial->parts[i].load, err) : 0;
    return rc == 0 ? check_rules(rules, trial->id, err) : rc;
}

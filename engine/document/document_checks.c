/* SPDX-License-Identifier: BSD-3-Clause */
#include "document_checks.h"

#include "clock.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#define TIME_MAX_NS (30 * 86400 * NS_PER_S)
#define INTERVAL_MIN_NS (10 * NS_PER_MS)
#define PROBE_FPS_MAX 1e6 /* beyond that they are a load */
#define BATCH_MAX 1000000
#define BURST_MAX UINT32_MAX

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
    if (clock->error_ns < 0 || clock->error_ns > NS_PER_S)
        return err_set(err, -EINVAL, "job.clock: error_ns is 0 to 1 s");
    if (clock->error_ns > 0 && clock->mode != CLOCK_PTP)
        return err_set(err, -EINVAL, "job.clock: error_ns goes with ptp");
    return 0;
}

static bool any_is_zero(const uint32_t *sizes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (sizes[i] == 0)
            return true;
    return false;
}

/* What a step of a schedule sends goes as fast as it can: it has no load. */
static int check_load(const struct doc_trial *trial, const struct doc_load *load, struct err *err)
{
    const char *load_of = trial->pattern.load_of;
    bool divided = load_of != NULL && strcmp(load_of, "receivers") == 0;
    bool finite = isfinite(load->percent) && isfinite(load->bps) && isfinite(load->fps);
    const struct rule rules[] = {
        {!finite || (load->percent > 0) + (load->bps > 0) + (load->fps > 0) != 1,
         "load needs exactly one of percent, bps and fps, above 0", NONE},
        {load->percent > 100 && !divided, "a load of more than 100 % is more than the line carries",
         NONE},
        RULES_END,
    };

    return trial->traffic == TRAFFIC_SCHEDULE ? 0 : check_rules(rules, trial->id, err);
}

/* What belongs to one kind of traffic. */
static int check_traffic(const struct doc_trial *trial, struct err *err)
{
    const struct doc_pingpong no_pingpong = {0};
    const struct doc_pingpong *pingpong = trial->pingpong != NULL ? trial->pingpong : &no_pingpong;
    const struct doc_schedule no_schedule = {0};
    const struct doc_schedule *schedule = trial->schedule != NULL ? trial->schedule : &no_schedule;
    const struct doc_burst no_burst = {0};
    const struct doc_burst *burst = trial->burst != NULL ? trial->burst : &no_burst;
    uint32_t batch = schedule->batch != NULL ? *schedule->batch : 1;
    bool endless = burst->count != NULL && *burst->count == 0;
    const struct rule of_pingpong[] = {
        {pingpong->count == 0 && trial->window_ns <= 0,
         "ping-pong needs a count or a window_ns above 0", NONE},
        {pingpong->max_size < pingpong->min_size ||
             (pingpong->max_size > 0 && pingpong->min_size == 0),
         "random sizes are from min_size, above 0, to max_size, no less than that", NONE},
        {pingpong->samples && (pingpong->count == 0 || pingpong->count > PINGPONG_SAMPLES_MAX),
         "single times are kept of a count from 1 to 10000000", (double)pingpong->count},
        {pingpong->timeout_ns < 0, "timeout_ns is below 0", NONE},
        {!(pingpong->compute >= 0 && pingpong->compute <= 1), "compute is a share from 0 to 1",
         pingpong->compute},
        {trial->pattern.forward, "a chain that forwards sends nothing back: leave forward out",
         NONE},
        RULES_END,
    };
    const struct rule of_schedule[] = {
        {schedule->count == 0 && trial->window_ns <= 0,
         "a schedule needs a count or a window_ns above 0", NONE},
        {batch == 0 || batch > BATCH_MAX, "a batch has 1 to 1000000 repetitions", batch},
        {trial->by_clock, "the ranks of a schedule wait for each other: leave sync: none out",
         NONE},
        RULES_END,
    };
    const struct rule of_burst[] = {
        {burst->frames == 0 || burst->frames > BURST_MAX, "a burst has 1 to 4294967295 frames",
         (double)burst->frames},
        {burst->gap_ns < 0 || burst->gap_ns > TIME_MAX_NS, "a gap is 0 ns to 30 days",
         (double)burst->gap_ns},
        {burst->count != NULL && *burst->count > BURST_MAX, "there are 4294967295 bursts at most",
         NONE},
        {endless && trial->window_ns <= 0, "bursts need a count or a window_ns above 0", NONE},
        RULES_END,
    };
    const struct rule of_others[] = {
        {trial->pingpong != NULL && trial->traffic != TRAFFIC_PINGPONG,
         "pingpong needs traffic: pingpong", NONE},
        {trial->schedule != NULL && trial->traffic != TRAFFIC_SCHEDULE,
         "schedule needs traffic: schedule", NONE},
        {trial->burst != NULL && trial->traffic != TRAFFIC_BURST, "burst needs traffic: burst",
         NONE},
        RULES_END,
    };
    int rc = 0;

    static_assert(PINGPONG_SAMPLES_MAX == 10000000 && BATCH_MAX == 1000000 &&
                      BURST_MAX == 4294967295,
                  "as the sentences say");
    if (trial->traffic == TRAFFIC_PINGPONG)
        rc = check_rules(of_pingpong, trial->id, err);
    if (trial->traffic == TRAFFIC_SCHEDULE)
        rc = check_rules(of_schedule, trial->id, err);
    if (trial->traffic == TRAFFIC_BURST)
        rc = check_rules(of_burst, trial->id, err);
    return rc == 0 ? check_rules(of_others, trial->id, err) : rc;
}

/* How long a phase lasts is known only when it is over. */
static bool has_no_length(const struct doc_trial *trial)
{
    return trial->traffic == TRAFFIC_TRANSFER ||
           (trial->pingpong != NULL && trial->pingpong->count > 0) ||
           (trial->burst != NULL && (trial->burst->count == NULL || *trial->burst->count > 0));
}

int check_trial(const struct doc_trial *trial, struct err *err)
{
    const double *probe_fps = trial->latency != NULL ? trial->latency->probe_fps : NULL;
    bool empty = any_is_zero(trial->sizes, trial->sizes_count);
    int rc = check_load(trial, &trial->load, err);

    for (unsigned i = 0; i < trial->parts_count && rc == 0; i++) {
        const struct doc_part *part = &trial->parts[i];

        empty = empty || any_is_zero(part->sizes, part->sizes_count);
        rc = part->load != NULL ? check_load(trial, part->load, err) : 0;
    }
    if (rc == 0) {
        const struct rule rules[] = {
            {trial->sizes_count == 0 && trial->traffic != TRAFFIC_SCHEDULE, "sizes are missing",
             NONE},
            {empty, "a size of 0 bytes", NONE},
            {any_is_zero(trial->connectivity_check_sizes, trial->connectivity_check_sizes_count),
             "a probe of 0 bytes", NONE},
            {trial->warmup_ns < 0 || trial->cooldown_ns < 0 || trial->drain_timeout_ns < 0 ||
                 trial->drain_max_ns < 0,
             "a time is below 0", NONE},
            {trial->warmup_ns > TIME_MAX_NS || trial->window_ns > TIME_MAX_NS ||
                 trial->cooldown_ns > TIME_MAX_NS || trial->drain_timeout_ns > TIME_MAX_NS ||
                 trial->drain_max_ns > TIME_MAX_NS,
             "a time is above 30 days", NONE},
            {trial->interval_ns != 0 &&
                 (trial->interval_ns < INTERVAL_MIN_NS || trial->interval_ns > TIME_MAX_NS),
             "interval_ns is 10 ms to 30 days, or 0 for none", NONE},
            {probe_fps != NULL && !(*probe_fps >= 0 && *probe_fps <= PROBE_FPS_MAX),
             "probe_fps is 0 to 1e+06 a second and flow", probe_fps != NULL ? *probe_fps : NONE},
            {trial->traffic == TRAFFIC_STREAM && trial->window_ns <= 0,
             "a stream needs a window_ns above 0", NONE},
            {trial->traffic == TRAFFIC_TRANSFER && trial->transfer_bytes == 0,
             "a transfer needs transfer_bytes above 0", NONE},
            {trial->by_clock && has_no_length(trial),
             "phases that follow the clock (sync: none) have a fixed length; a transfer or a "
             "count of messages or bursts has none: use sync: barrier",
             NONE},
            RULES_END,
        };

        rc = check_rules(rules, trial->id, err);
    }
    return rc == 0 ? check_traffic(trial, err) : rc;
}

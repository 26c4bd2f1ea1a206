/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over verbs, on this machine's own RDMA devices: verbs DEVICE... [WORD...]
 *
 * Words: uc, ud; write; pairs (three queue pairs); poll, event; fresh (no reuse); shallow (depth
 * 2); outline (nothing inline). The devices must reach each other over a wire: in a guest whose
 * interfaces are on one switch, and whose routes between them do not stay inside (tests/vm).
 */
#include "battery.h"

#include "clock.h"
#include "verbs.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct transport transport_verbs;

static struct verbs_options *options_of(struct phase *phase)
{
    return battery_options(phase);
}

static char names[BATTERY_PORTS][32];
static char *devices[BATTERY_PORTS];
static size_t device_count;
static struct verbs_options wanted;

static const char *make(struct port_conf *confs)
{
    static char reason[128];

    for (size_t i = 0; i < device_count; i++) {
        char path[128];

        snprintf(path, sizeof path, "/sys/class/infiniband/%.64s", devices[i]);
        if (access(path, R_OK) != 0) {
            snprintf(reason, sizeof reason, "there is no RDMA device %.64s", devices[i]);
            return reason;
        }
        snprintf(names[i], sizeof names[i], "node%zu:r0", i);
        confs[i] = (struct port_conf){.name = names[i], .network = "default", .rdma = devices[i]};
    }
    return device_count >= 2 ? NULL : "two RDMA devices must be named";
}

static void tune(struct phase *phase)
{
    phase->load.rate_bps = 2e6;
    *options_of(phase) = wanted;
}

static void tune_waiting(struct phase *phase)
{
    options_of(phase)->queue_pairs = 1;
}

/* --- refusals --- */

static void too_large_an_mtu(struct phase *phase)
{
    options_of(phase)->mtu = 4096;
}

static void no_such_mtu(struct phase *phase)
{
    options_of(phase)->mtu = 1500;
}

static void no_such_gid(struct phase *phase)
{
    options_of(phase)->gid_index = 200;
}

static void uc_send(struct phase *phase)
{
    options_of(phase)->service = VERBS_UC;
    options_of(phase)->operation = VERBS_SEND;
}

static void too_large_for_ud(struct phase *phase)
{
    options_of(phase)->service = VERBS_UD;
    options_of(phase)->operation = VERBS_SEND;
    phase->sizes[0] = 5000;
}

static void several_pairs_back(struct phase *phase)
{
    phase->traffic = TRAFFIC_PINGPONG;
    options_of(phase)->service = VERBS_RC;
    options_of(phase)->operation = VERBS_SEND;
    options_of(phase)->queue_pairs = 2;
}

static const struct battery_refusal refusals[] = {
    {.spoil = too_large_an_mtu, .says = "larger than the port's active MTU"},
    {.spoil = no_such_mtu, .says = "a path MTU is 256, 512"},
    {.spoil = no_such_gid, .says = "is not in the port's GID table"},
    {.spoil = uc_send, .says = "uc has write"},
    {.spoil = too_large_for_ud, .says = "a message is one packet"},
    {.spoil = several_pairs_back, .says = "leave queue_pairs out"},
};

/* As fast as it goes, both ways at once; the second time over the queue pairs of the first. */
static void unlimited(struct transport_port **ports, const struct port_conf *confs)
{
    struct port_facts before;
    struct port_facts after;
    bool reliable = wanted.service == VERBS_RC;

    for (unsigned turn = 0; turn < 2; turn++) {
        struct battery_run run;

        battery_begin(&run);
        run.phase.load = (struct load){.unlimited = true};
        run.duration_ns = NS_PER_S;
        run.phase.sizes[0] = wanted.service == VERBS_UD ? 1000 : 65536;
        battery_add(&run, 0, 1, PATTERN_GENERATE);
        battery_add(&run, 1, 0, PATTERN_GENERATE);
        transport_verbs.facts(ports[0], &before, true);
        battery_play(&run);
        transport_verbs.facts(ports[0], &after, true);
        if (reliable)
            battery_whole(&run, 200000);
        for (size_t i = 0; i < run.flow_count; i++) {
            const struct flow_side *to = &run.flows[i].destination;

            print_message("%llu of %llu messages arrived, %llu bytes\n",
                          (unsigned long long)to->live.messages,
                          (unsigned long long)run.flows[i].source.live.messages,
                          (unsigned long long)to->live.payload_bytes);
            assert_int_equal(to->corrupted, 0);
            assert_true(to->live.messages * 2 > run.flows[i].source.live.messages);
        }
        assert_true((uint64_t)(after.hardware.sent_frames - before.hardware.sent_frames) * 1024 >=
                    run.flows[0].source.live.payload_bytes / 2);
    }
}

static bool forgets;
static double reused_pairs;

/* One end's port may keep none of its queue pairs; how many of the other's were kept. */
static void look_at_reuse(struct battery_run *run, uint32_t rank, struct lane *lane)
{
    static struct flow_reading reading;

    if (rank == 1 && forgets)
        ((struct verbs_lane *)lane)->keep_max = 0;
    if (rank != 0)
        return;
    transport_verbs.read_flow(lane, &lane->request.sends[0], &reading);
    for (unsigned i = 0; i < reading.metric_count; i++)
        if (strcmp(reading.metrics[i].name, "reused_queue_pairs") == 0)
            reused_pairs = reading.metrics[i].value;
}

/* A kept end whose partner kept none is connected again; then both keep theirs. */
static void one_side_forgets(void)
{
    bool keeps = wanted.service == VERBS_RC && wanted.reuse > 0;

    for (unsigned turn = 0; turn < 4; turn++) {
        struct battery_run run;

        battery_begin(&run);
        battery_add(&run, 0, 1, PATTERN_GENERATE);
        battery_add(&run, 1, 0, PATTERN_GENERATE);
        run.look = look_at_reuse;
        forgets = turn < 2;
        battery_play(&run);
        if (keeps)
            battery_whole(&run, 1);
        if (turn > 0)
            assert_int_equal((int)reused_pairs, keeps && turn == 3 ? wanted.queue_pairs : 0);
    }
}

static void further(struct transport_port **ports, const struct port_conf *confs)
{
    unlimited(ports, confs);
    one_side_forgets();
}

/* --- words --- */

static void set_word(const char *word)
{
    static const struct {
        const char *word;
        size_t at; /* among the options */
        uint32_t value;
    } words[] = {
#define OPTION_AT(member) offsetof(struct verbs_options, member)
        {"uc", OPTION_AT(service), VERBS_UC},
        {"ud", OPTION_AT(service), VERBS_UD},
        {"write", OPTION_AT(operation), VERBS_WRITE},
        {"poll", OPTION_AT(completion), VERBS_COMPLETION_POLL},
        {"event", OPTION_AT(completion), VERBS_COMPLETION_EVENT},
        {"fresh", OPTION_AT(reuse), 0},
        {"outline", OPTION_AT(inline_bytes), 0},
#undef OPTION_AT
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].word, word) == 0) {
            memcpy((char *)&wanted + words[i].at, &words[i].value, sizeof words[i].value);
            return;
        }
    if (strcmp(word, "pairs") == 0)
        wanted.queue_pairs = 3;
    else if (strcmp(word, "shallow") == 0)
        wanted.depth = 2;
    else if (device_count < BATTERY_PORTS)
        devices[device_count++] = strdup(word);
}

int main(int argc, char **argv)
{
    struct battery_subject subject = {
        .transport = &transport_verbs,
        .what = "verbs",
        .make = make,
        .tune = tune,
        .tune_waiting = tune_waiting,
        .sizes = {1, 16, 100, 1024, 8192},
        .refusals = refusals,
        .refusal_count = sizeof refusals / sizeof refusals[0],
        .more = further,
        .emulated = true,
    };

    option_defaults(verbs_option_table.options, &wanted);
    wanted.timeout = 18; /* 1 s: an emulated machine may be busy with others */
    for (int i = 1; i < argc; i++)
        set_word(argv[i]);
    /* A chain is forwarded over rc only. */
    subject.ports = wanted.service == VERBS_RC ? device_count : 2;
    if (wanted.service == VERBS_UD) {
        subject.sizes[4] = 0;
        subject.back_most = 1024;
    }
    subject.no_steps = wanted.service != VERBS_RC || wanted.operation != VERBS_SEND;
    subject.gives_up = wanted.service != VERBS_RC;
    return battery_main(&subject);
}

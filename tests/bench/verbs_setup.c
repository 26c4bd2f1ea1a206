/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How long the queue pairs for many partners take, and what memory: verbs_setup SOURCE SINK
 * PARTNERS BYTES, in a guest whose two RDMA devices reach each other over a wire
 * (verbs_setup.py).
 *
 * A lane of SOURCE sends to PARTNERS ranks, all of which are one lane of SINK. Both are prepared
 * and connected as in a run for messages of BYTES, by infos that go from hand to hand; then each
 * pair carries a small message, which is verified. What counts is the time in the calls of the
 * sending lane, as nobody has partners of his own host in a run; that of both is printed beside it.
 */
#include "clock.h"
#include "common.h"
#include "transport.h"
#include "verbs_options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_NS (60 * NS_PER_S)
#define REACH_S 5.0
#define PROOF_BYTES 1024 /* one packet: all at once are no storm for an emulated switch */

extern const struct transport transport_verbs;

static const struct transport *const verbs = &transport_verbs;

enum place { SOURCE, SINK, PLACES };

struct stored_blob {
    bool written;
    struct blob blob;
};

struct side {
    struct port_conf conf;
    struct transport_port *port;
    struct port_count count;
    struct lane_flow *flows;
    struct flow_side *counts;
    struct lane *lane;
    double spent_s; /* in prepare and connect */
    bool ready;
};

struct bed {
    unsigned partners;
    struct phase phase;
    struct verbs_options options; /* of the phase */
    struct stored_blob *stored;   /* by partner and writer */
    struct blob_exchange blob_exchange;
    struct side sides[PLACES];
};

static int refuse(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    return 1;
}

/* --- infos, from hand to hand --- */

static struct stored_blob *stored_at(const struct bed *bed, const struct blob_key *key)
{
    size_t writer = key->from_source ? 0 : 1;

    return &bed->stored[(key->dst - 1) * 2 + writer];
}

static int publish(void *context, const struct blob_key *key, const struct blob *blob)
{
    *stored_at(context, key) = (struct stored_blob){true, *blob};
    return 0;
}

static int fetch(void *context, const struct blob_key *key, struct blob *blob)
{
    const struct stored_blob *found = stored_at(context, key);

    if (!found->written)
        return -EAGAIN;
    *blob = found->blob;
    return 0;
}

/* --- the two sides --- */

static int open_sides(struct bed *bed, char *devices[])
{
    static const struct transport_run run = {.run_id = "bench", .node = "node1"};
    static const char *const names[PLACES] = {"node1:r0", "node1:r1"};
    struct err err = {""};

    for (int i = 0; i < PLACES; i++) {
        struct side *side = &bed->sides[i];

        side->conf = (struct port_conf){.name = names[i], .network = "bench", .rdma = devices[i]};
        if (verbs->open(&side->port, &side->conf, &run, &err) != 0)
            return refuse("open", &err);
    }
    return 0;
}

static int make_flows(struct bed *bed)
{
    for (int i = 0; i < PLACES; i++) {
        struct side *side = &bed->sides[i];
        struct blob partner;

        partner = transport_address(verbs, bed->sides[1 - i].port);
        side->flows = calloc(bed->partners, sizeof *side->flows);
        side->counts = calloc(bed->partners, sizeof *side->counts);
        if (side->flows == NULL || side->counts == NULL)
            return -ENOMEM;
        for (unsigned k = 0; k < bed->partners; k++)
            side->flows[k] = (struct lane_flow){.src = 0,
                                                .dst = k + 1,
                                                .role = PATTERN_GENERATE,
                                                .partner = partner,
                                                .side = &side->counts[k]};
    }
    bed->stored = calloc((size_t)bed->partners * 2, sizeof *bed->stored);
    return bed->stored != NULL ? 0 : -ENOMEM;
}

static int prepare(struct bed *bed, enum place place, struct err *err)
{
    struct side *side = &bed->sides[place];
    struct lane_request request = {
        .port = side->port,
        .phase = &bed->phase,
        .rank = place == SOURCE ? 0 : 1,
        .ranks = bed->partners + 1,
        .count = &side->count,
        .blob_exchange = &bed->blob_exchange,
    };
    int64_t begun_ns = clock_now();
    int rc;

    if (place == SOURCE) {
        request.sends = side->flows;
        request.send_count = bed->partners;
    } else {
        request.receives = side->flows;
        request.receive_count = bed->partners;
    }
    rc = verbs->prepare(&side->lane, &request, err);
    side->spent_s += (double)(clock_now() - begun_ns) / NS_PER_S;
    return rc;
}

static int connect_side(struct side *side, struct err *err)
{
    int64_t begun_ns = clock_now();
    int rc = side->ready ? 0 : verbs->connect(side->lane, begun_ns, err);

    side->spent_s += (double)(clock_now() - begun_ns) / NS_PER_S;
    side->ready = rc == 0;
    return rc == -EAGAIN ? 0 : rc;
}

static int connect_all(struct bed *bed)
{
    struct side *source = &bed->sides[SOURCE], *sink = &bed->sides[SINK];
    struct err err = {""};

    if (prepare(bed, SOURCE, &err) != 0 || prepare(bed, SINK, &err) != 0)
        return refuse("prepare", &err);
    while (!source->ready || !sink->ready)
        if (connect_side(source, &err) != 0 || connect_side(sink, &err) != 0)
            return refuse("connect", &err);
    return 0;
}

/* --- one message over each --- */

static int play(struct bed *bed)
{
    struct lane *from = bed->sides[SOURCE].lane, *to = bed->sides[SINK].lane;
    int64_t begun_ns = clock_now();
    uint64_t messages = 0;

    bed->phase.start_ns = bed->phase.open_ns = begun_ns;
    bed->phase.close_ns = bed->phase.stop_ns = begun_ns + LIMIT_NS;
    verbs->start(to, begun_ns);
    verbs->start(from, begun_ns);
    while ((!from->tx_done || !to->rx_done) && clock_now() < begun_ns + LIMIT_NS) {
        verbs->poll(from, clock_now());
        verbs->poll(to, clock_now());
    }
    if (from->error.text[0] != '\0' || to->error.text[0] != '\0')
        return refuse("traffic", from->error.text[0] != '\0' ? &from->error : &to->error);
    for (unsigned i = 0; i < bed->partners; i++) {
        const struct flow_side *side = &bed->sides[SINK].counts[i];

        messages += side->live.messages - side->corrupted;
    }
    printf("%llu of %u partners got their message\n", (unsigned long long)messages, bed->partners);
    return messages == bed->partners ? 0 : 1;
}

/* --- what it took --- */

/* Bytes that the kernel says are free, or could be. */
static double available(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    double kib = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemAvailable: %lf kB", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kib * 1024;
}

static double bytes_of(const struct side *side)
{
    struct flow_metric metrics[32];
    unsigned count = verbs->flow_metrics(side->lane, &side->flows[0], metrics, 32);

    for (unsigned i = 0; i < count; i++)
        if (strcmp(metrics[i].name, "queue_pair_bytes") == 0)
            return metrics[i].value;
    return 0;
}

static int run(struct bed *bed)
{
    const struct side *source = &bed->sides[SOURCE], *sink = &bed->sides[SINK];
    double before = available();
    double used;
    int64_t begun_ns;

    if (connect_all(bed) != 0)
        return 1;
    used = (before - available()) / bed->partners;
    printf("%u partners, messages of %u KiB, depth %u, variant %s\n", bed->partners,
           bed->phase.sizes[0] / 1024, bed->options.depth, source->lane->variant);
    printf("both ends: %.3g s\n", source->spent_s + sink->spent_s);
    printf("memory by queue pair: %.1f KiB at the source, %.1f KiB at the sink of ours; %.1f KiB "
           "for both ends with all that driver and kernel take\n",
           bytes_of(source) / 1024, bytes_of(sink) / 1024, used / 1024);
    bench_at_most("set-up of the queue pairs", source->spent_s, "s", REACH_S);
    if (play(bed) != 0)
        return 1;
    begun_ns = clock_now();
    verbs->destroy(source->lane);
    verbs->destroy(sink->lane);
    printf("both ends given back: %.3g s\n", (double)(clock_now() - begun_ns) / NS_PER_S);
    return 0;
}

int main(int argc, char *argv[])
{
    struct bed bed = {
        .phase = {.tag = 1,
                  .seed = 1,
                  .traffic = TRAFFIC_TRANSFER,
                  .size_count = 1,
                  .load = {.unlimited = true},
                  .options = &bed.options},
        .options = {.operation = VERBS_WRITE,
                    .depth = 128,
                    .queue_pairs = 1,
                    .inline_bytes = VERBS_AUTOMATIC,
                    .gid_index = VERBS_AUTOMATIC,
                    .retry = 6,
                    .rnr_retry = 6,
                    .timeout = 18},
        .blob_exchange = {.publish = publish, .fetch = fetch},
    };
    int status = 1;

    if (argc != 5) {
        fprintf(stderr, "usage: %s SOURCE SINK PARTNERS BYTES\n", argv[0]);
        return 2;
    }
    bed.blob_exchange.context = &bed;
    bed.partners = (unsigned)strtoul(argv[3], NULL, 10);
    bed.phase.sizes[0] = (uint32_t)strtoul(argv[4], NULL, 10);
    bed.phase.transfer_bytes = PROOF_BYTES;
    if (open_sides(&bed, &argv[1]) == 0 && make_flows(&bed) == 0)
        status = run(&bed);
    for (int i = 0; i < PLACES; i++) {
        if (bed.sides[i].port != NULL)
            verbs->close(bed.sides[i].port);
        free(bed.sides[i].flows);
        free(bed.sides[i].counts);
    }
    free(bed.stored);
    return status;
}

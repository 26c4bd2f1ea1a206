/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end of a path between two processes: 64-byte ipv4-udp frames of one flow, as fast as they go,
 * through the dpdk transport's lanes.
 *
 *     dpdk_pair send SECONDS PORT      sends
 *     dpdk_pair receive SECONDS PORT   waits for the first frame, and from 0.2 s after it counts
 *                                      what it verified
 *
 * PORT: vdev=DEVICE, or iface=NAME driver=af_packet|af_xdp netns=NAME. Prints frames/s, and what
 * else the receiver found; how much of the sender's time was the kernel's.
 */
#include "clock.h"
#include "common.h"
#include "dpdk_bed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>

#define PATIENCE_NS (20 * NS_PER_S)
#define WARM_NS (NS_PER_S / 5)

enum role { SENDER, RECEIVER };

/* Both ends' addresses are known beforehand, so that neither must ask the other. */
static const struct port_conf ends[] = {
    [SENDER] = {.name = "bench:sender", .mac = "02:00:00:00:01:01", .ipv4 = "198.18.0.1/16"},
    [RECEIVER] = {.name = "bench:receiver", .mac = "02:00:00:00:01:02", .ipv4 = "198.18.0.2/16"},
};

static void read_port(struct port_conf *conf, const char *word)
{
    const struct {
        const char *name;
        const char **value;
    } keys[] = {{"vdev=", &conf->vdev},
                {"iface=", &conf->iface},
                {"driver=", &conf->driver},
                {"netns=", &conf->netns}};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strncmp(word, keys[i].name, strlen(keys[i].name)) == 0)
            *keys[i].value = word + strlen(keys[i].name);
}

/* The address of the other end: a device of no use but to say what it looks like. */
static struct blob partner_of(enum role role)
{
    struct bed stand_in = {.conf = ends[1 - role]};

    stand_in.conf.vdev = "net_null9,no-rx=1";
    bed_open(&stand_in);
    bed_close(&stand_in);
    return stand_in.partner;
}

static void send_frames(struct bed *bed, double seconds)
{
    int64_t begin_ns = clock_now();
    struct tms used;

    bed_burn(bed, (int64_t)(seconds * 1e9));
    times(&used);
    printf("%.0f frames/s, %.1f %% of its time in the kernel\n",
           (double)bed_sent(bed) * 1e9 / (double)(clock_now() - begin_ns),
           100 * (double)used.tms_stime / (double)(used.tms_utime + used.tms_stime));
}

static void receive_frames(struct bed *bed, double seconds)
{
    int64_t begin_ns, limit_ns = clock_now() + PATIENCE_NS;
    const struct flow_side *side = &bed->sides[0];
    uint64_t frames;

    while (bed->lane->arrived_ns == 0 && clock_now() < limit_ns)
        bed_burn(bed, NS_PER_MS);
    bed_burn(bed, WARM_NS);
    frames = bed_received(bed);
    begin_ns = clock_now();
    bed_burn(bed, (int64_t)(seconds * 1e9));
    frames = bed_received(bed) - frames;
    printf("%.0f frames/s, %" PRIu64 " duplicated, %" PRIu64 " reordered, %" PRIu64
           " corrupted, %" PRIu64 " misdelivered\n",
           (double)frames * 1e9 / (double)(clock_now() - begin_ns), side->duplicated,
           side->reordered, side->corrupted, bed->count.misdelivered);
    if (frames == 0 || side->duplicated + side->corrupted + bed->count.misdelivered > 0)
        bench_fail("the frames did not come through as they were sent");
}

int main(int argc, char **argv)
{
    enum role role = argc > 1 && strcmp(argv[1], "send") == 0 ? SENDER : RECEIVER;
    double seconds = argc > 2 ? atof(argv[2]) : 0;
    struct bed bed = {.conf = ends[role], .rank = role};

    if (argc < 4 || seconds <= 0)
        return 2;
    bed.send_count = role == SENDER;
    bed.receive_count = role == RECEIVER;
    for (int i = 3; i < argc; i++)
        read_port(&bed.conf, argv[i]);
    bed.partner = partner_of(role);
    bed_open(&bed);
    printf("ready\n");
    fflush(stdout);
    bed_start(&bed);
    if (role == SENDER)
        send_frames(&bed, seconds);
    else
        receive_frames(&bed, seconds);
    bed_close(&bed);
    return 0;
}

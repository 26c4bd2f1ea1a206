/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control endpoint's clock: which clock run time goes by, and the questions to the parent that
 * estimate its offset. run_clock.h judges; what is asked of the kernel and of the parent is here.
 */
#include "clock.h"
#include "endpoint.h"
#include "endpoint_state.h"

#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

/* Clock questions to the parent, where its clock is another: some quickly at first; then for each
 * slot of offset_filter.h. The answer is asked another at once: a core that has just slept takes a
 * while to wake, the parent's longer than ours, and the second question finds both awake. Four
 * datagrams of 88 bytes in all. */
#define PINGS_QUICK 16
#define PING_QUICK_NS (5 * NS_PER_MS)
#define PING_SLOW_NS OFFSET_SLOT_NS
#define SAME_BOOT(a, b) ((a) >> 31 == (b) >> 31)

/* ---- whose clock ---- */

/* Of a file's beginning; keyed with the run's key, because a boot id tells machines apart. A file
 * that can't be read is like nobody's when it is `needed`, else like an empty one. */
static uint32_t hash_file(const char *path, bool needed, const uint8_t key[DATAGRAM_KEY_BYTES])
{
    uint8_t hash[crypto_generichash_BYTES_MIN], bytes[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    uint32_t word;

    if (fd >= 0)
        close(fd);
    if (size <= 0 && needed)
        randombytes_buf(bytes, (size_t)(size = 16));
    crypto_generichash(hash, sizeof(hash), bytes, size > 0 ? (size_t)size : 0, key,
                       DATAGRAM_KEY_BYTES);
    memcpy(&word, hash, sizeof(word));
    return word;
}

int64_t endpoint_boot_id(const uint8_t key[DATAGRAM_KEY_BYTES])
{
    uint64_t boot = hash_file("/proc/sys/kernel/random/boot_id", true, key);

    return (int64_t)((boot << 32 | hash_file("/proc/self/timens_offsets", false, key)) >> 1 | 1);
}

/* ptp: what the kernel says now. */
static void ask_kernel(struct control *control)
{
    const struct kernel_sync_status *kernel = &control->kernel;
    struct offset_estimate realtime = {0, -1};

    kernel_sync_read(&control->kernel);
    realtime.offset_ns = kernel->offset_ns;
    if (kernel->synchronized)
        realtime.bound_ns =
            control->clock_conf.error_ns > 0 ? control->clock_conf.error_ns : kernel->maxerror_ns;
    run_clock_discipline(&control->clock, realtime);
}

void endpoint_learn_clocks(struct control *control, int64_t now_ns)
{
    const struct membership *membership = &control->membership;

    control->clocks_known = true;
    run_clock_decide(&control->clock, control->clock_conf.mode,
                     membership->root_boot == membership->boot, membership->neighbours.self == 0);
    if (control->clock.mode == CLOCK_PTP)
        ask_kernel(control);
    if (run_clock_asks(&control->clock))
        control->ping_ns = now_ns;
}

/* ---- questions to the parent ---- */

void endpoint_hear_clock(struct control *control, const struct datagram *datagram, int64_t now_ns)
{
    const struct offset_stamps stamps = {datagram->origin_ns, datagram->receive_ns,
                                         datagram->transmit_ns, now_ns};
    const struct offset_estimate root = {datagram->root_offset_ns, datagram->root_bound_ns};
    uint32_t self = control->membership.neighbours.self;

    if (self && datagram->sender == neighbours_parent(self))
        run_clock_heard(&control->clock, &stamps, root);
}

static void ask_parent(struct control *control)
{
    endpoint_send(control, DATAGRAM_PING, neighbours_parent(control->membership.neighbours.self));
}

void endpoint_ping(struct control *control, int64_t now_ns)
{
    if (now_ns < control->ping_ns)
        return;
    control->ping_ns = now_ns + (control->pings++ < PINGS_QUICK ? PING_QUICK_NS : PING_SLOW_NS);
    control->asks_again = true;
    ask_parent(control);
}

void endpoint_pong(struct control *control)
{
    if (!control->asks_again)
        return;
    control->asks_again = false;
    ask_parent(control);
}

/* ---- run time ---- */

struct control_clock control_clock_at(struct control *control, int64_t at_ns)
{
    struct offset_estimate root;

    if (control->clock.mode == CLOCK_PTP)
        ask_kernel(control);
    root = run_clock_estimate(&control->clock, at_ns);
    return (struct control_clock){.offset_ns = root.offset_ns, .bound_ns = root.bound_ns};
}

struct control_clock control_clock(struct control *control)
{
    return control_clock_at(control, clock_now());
}

struct control_clocks control_clocks(const struct control *control)
{
    const struct membership *membership = &control->membership;
    struct control_clocks clocks = {
        .mode = control->clock.mode,
        .maxerror_ns = -1,
        .esterror_ns = -1,
    };

    if (!control->clocks_known)
        return clocks;
    clocks.with_node_0 = SAME_BOOT(membership->root_boot, membership->boot);
    clocks.one_clock = membership->root_boot == membership->boot;
    clocks.id = (uint64_t)membership->boot;
    if (clocks.mode == CLOCK_PTP) {
        clocks.maxerror_ns = control->kernel.maxerror_ns;
        clocks.esterror_ns = control->kernel.esterror_ns;
    }
    return clocks;
}

bool control_clock_settled(const struct control *control)
{
    return control->clocks_known &&
           (!run_clock_asks(&control->clock) || control->pings > PINGS_QUICK);
}

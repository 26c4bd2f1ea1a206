/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over verbs, on this machine's own RDMA devices: verbs DEVICE... [KEY=VALUE...]
 *
 * The devices must reach each other over a wire: in a guest whose
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

static char names[BATTERY_PORTS][32];
static char *devices[BATTERY_PORTS];
static size_t device_count;

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

static const struct battery_refusal refusals[] = {
    {.options = "mtu=4096", .says = "larger than the port's active MTU"},
    {.options = "mtu=1500", .says = "a path MTU must be 256, 512"},
    {.options = "gid_index=200", .says = "is not in the port's GID table"},
    {.options = "service=uc operation=send", .says = "uc has write"},
    {.options = "service=ud operation=send", .size = 5000, .says = "a message is one packet"},
    {.options = "service=rc operation=send queue_pairs=2",
     .message = true,
     .says = "remove queue_pairs"},
    {.says = NULL},
};

int main(int argc, char **argv)
{
    bool write = battery_word(argc, argv, "operation=write");
    bool datagrams = battery_word(argc, argv, "service=ud");
    bool reliable = !datagrams && !battery_word(argc, argv, "service=uc");
    struct battery_subject subject = {
        .transport = &transport_verbs,
        .what = "verbs",
        .make = make,
        .options = "timeout=18", /* 1 s: an emulated machine may serve other machines first */
        .waiting = "queue_pairs=1",
        .rate_bps = 2000000,
        .sizes = {1, 16, 100, 1024, datagrams ? 0 : 8192},
        .back_most = datagrams ? 1024 : 0,
        .refusals = refusals,
        .unlimited = 200000,
        .counted_bytes = 2048,
        .emulated = true,
    };

    for (int i = 1; i < argc; i++)
        if (strchr(argv[i], '=') == NULL && device_count < BATTERY_PORTS)
            devices[device_count++] = argv[i];
    subject.ports = reliable ? device_count : 2; /* a chain is forwarded over rc only */
    subject.no_steps = !reliable || write;
    subject.gives_up = !reliable;
    return battery_main(&subject, argc, argv);
}

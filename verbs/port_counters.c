/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of RDMA ports. Drivers name them as they like; the first that exists counts.
 */
#include "port.h"

#include <stdio.h>

#define NAMES_MAX 3

/* Where a counter of ours is found. */
struct source {
    size_t offset; /* in struct port_hardware */
    const char *names[NAMES_MAX];
};

#define AT(member) offsetof(struct port_hardware, member)

/* counters/: the InfiniBand architecture's (port_rcv_errors ...); hw_counters/: the driver's: mlx5
 * (out_of_sequence ...), rxe (sent_pkts ...), bnxt_re and irdma (others). */
static const struct source sources[] = {
    {AT(received_frames),
     {"hw_counters/rcvd_pkts", "counters/port_rcv_packets", "hw_counters/ip4InPkts"}},
    {AT(sent_frames),
     {"hw_counters/sent_pkts", "counters/port_xmit_packets", "hw_counters/ip4OutPkts"}},
    {AT(dropped_receive), {"hw_counters/out_of_buffer", "hw_counters/rx_roce_discards"}},
    {AT(dropped_send), {"counters/port_xmit_discards"}},
    {AT(errors), {"counters/port_rcv_errors", "hw_counters/rcvd_with_error"}},
    {AT(retransmitted),
     {"hw_counters/completer_retry_err", "hw_counters/packet_seq_err",
      "hw_counters/to_retransmits"}},
    {AT(out_of_sequence),
     {"hw_counters/out_of_sequence", "hw_counters/out_of_seq_request",
      "hw_counters/oos_drop_count"}},
    {AT(not_ready),
     {"hw_counters/rnr_nak_retry_err", "hw_counters/rcvd_rnr_err", "hw_counters/rnr_naks_rcvd"}},
    {AT(cnp_sent), {"hw_counters/np_cnp_sent", "hw_counters/tx_cnp_pkts", "hw_counters/cnpSent"}},
    {AT(cnp_handled),
     {"hw_counters/rp_cnp_handled", "hw_counters/rx_cnp_pkts", "hw_counters/cnpHandled"}},
    {AT(ecn_marked),
     {"hw_counters/np_ecn_marked_roce_packets", "hw_counters/rx_ecn_marked_pkts",
      "hw_counters/RxECNMrkd"}},
};

static int64_t read_number(const char *device, uint8_t number, const char *name)
{
    char path[192];
    long long value = -1;
    FILE *file;

    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/%s", device, number, name);
    file = fopen(path, "re");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%lld", &value) != 1)
        value = -1;
    fclose(file);
    return value;
}

static int64_t *counter_of(struct port_hardware *counters, const struct source *source)
{
    return (int64_t *)(void *)((char *)counters + source->offset);
}

void verbs_counters_read(const char *device, uint8_t number, struct port_hardware *counters)
{
    *counters = PORT_HARDWARE_UNKNOWN;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        int64_t *counter = counter_of(counters, &sources[i]);

        for (unsigned n = 0; n < NAMES_MAX && sources[i].names[n] != NULL && *counter < 0; n++)
            *counter = read_number(device, number, sources[i].names[n]);
    }
}

void verbs_counters_subtract(struct port_hardware *counters, const struct port_hardware *base)
{
    struct port_hardware from = *base;

    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        int64_t *counter = counter_of(counters, &sources[i]);
        int64_t before = *counter_of(&from, &sources[i]);

        *counter = *counter < 0 || before < 0 ? -1 : *counter - before;
    }
}

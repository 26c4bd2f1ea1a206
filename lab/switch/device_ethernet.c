/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DPDK device at a port of the modelled switch.
 */
#include "device.h"

#include "eal.h"

#include <errno.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIPTORS 1024

struct ethernet {
    struct device device;
    uint16_t port;
};

static uint16_t receive(struct device *device, struct rte_mbuf **frames, uint16_t most)
{
    return rte_eth_rx_burst(((struct ethernet *)device)->port, 0, frames, most);
}

static uint16_t send_frames(struct device *device, struct rte_mbuf **frames, uint16_t count)
{
    return rte_eth_tx_burst(((struct ethernet *)device)->port, 0, frames, count);
}

static bool ready(struct device *device)
{
    struct rte_eth_link link;

    return rte_eth_link_get_nowait(((struct ethernet *)device)->port, &link) == 0 &&
           link.link_status == RTE_ETH_LINK_UP;
}

static void close_ethernet(struct device *device)
{
    struct ethernet *ethernet = (struct ethernet *)device;
    struct rte_eth_dev_info info;

    (void)rte_eth_dev_stop(ethernet->port);
    if (rte_eth_dev_info_get(ethernet->port, &info) == 0) {
        (void)rte_eth_dev_close(ethernet->port);
        (void)rte_dev_remove(info.device);
    }
    free(ethernet);
}

static const struct device_kind kind = {
    .receive = receive, .send = send_frames, .ready = ready, .close = close_ethernet};

static int start(uint16_t port, struct rte_mempool *pool)
{
    struct rte_eth_conf conf = {.rxmode = {.mtu = 0}};
    uint16_t receives = DESCRIPTORS, sends = DESCRIPTORS;
    int rc = rte_eth_dev_configure(port, 1, 1, &conf);

    if (rc == 0)
        rc = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receives, &sends);
    if (rc == 0)
        rc = rte_eth_rx_queue_setup(port, 0, receives, (unsigned)SOCKET_ID_ANY, NULL, pool);
    if (rc == 0)
        rc = rte_eth_tx_queue_setup(port, 0, sends, (unsigned)SOCKET_ID_ANY, NULL);
    if (rc == 0)
        rc = rte_eth_dev_start(port);
    (void)rte_eth_promiscuous_enable(port); /* rings and memif take every frame anyway */
    return rc;
}

int device_open_ethernet(struct device **device, const char *arguments, struct rte_mempool *pool,
                         struct err *err)
{
    size_t length = strcspn(arguments, ",");
    struct ethernet *ethernet;
    char name[RTE_ETH_NAME_MAX_LEN];
    uint16_t port;
    int rc;

    if (length >= sizeof name)
        return err_set(err, -EINVAL, "the device name in '%s' is too long", arguments);
    snprintf(name, sizeof name, "%.*s", (int)length, arguments);
    eal_log_clear();
    rc = rte_eal_hotplug_add("vdev", name, arguments + length + (arguments[length] != '\0'));
    if (rc != 0 || rte_eth_dev_get_port_by_name(name, &port) != 0)
        return err_set(err, rc < 0 ? rc : -ENODEV, "DPDK can't create the device '%s': %s",
                       arguments, eal_log_first());
    ethernet = calloc(1, sizeof *ethernet);
    if (ethernet == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    *ethernet = (struct ethernet){.device = {.kind = &kind, .pool = pool}, .port = port};
    if ((rc = start(port, pool)) != 0) {
        close_ethernet(&ethernet->device);
        return err_set(err, rc, "DPDK port %u can't be started: %s", port, rte_strerror(-rc));
    }
    *device = &ethernet->device;
    return 0;
}

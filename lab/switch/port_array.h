/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The patch panel: the modelled switch with devices plugged into its ports, in real time.
 *
 * The model's time follows the clock from turn to turn. A frame that is found in a turn came since
 * the device was last seen empty: it is put on the wire as early as that, so that a switch whose
 * core was taken away for a while makes up for it as long as the devices' rings hold what came. As
 * long as a wire is busy, or its station paused, its devices are not read: their rings fill, and
 * the station sees what it would see of a NIC at line rate.
 *
 * A port may have two devices, as a host has a NIC for DPDK and one for its kernel behind one
 * cable: a frame goes to the device by which its destination was the last to send, else to the
 * first that has a link, and to both if it is for a group.
 */
#ifndef MODEL_PORT_ARRAY_H
#define MODEL_PORT_ARRAY_H

#include "device.h"
#include "model.h"

#define PORT_ARRAY_DEVICES 2 /* vdev and iface */

struct array_port {
    struct device *devices[PORT_ARRAY_DEVICES];
    unsigned count;
    unsigned ready;       /**< bits by device */
    double frames_per_ns; /**< of the shortest; 0: no limit */
    uint64_t lost;
    uint64_t heard[PORT_ARRAY_DEVICES]; /**< the last source address that came by each device */
};

struct port_array {
    const struct model_conf *conf;
    struct model *model;
    struct model_host host;
    struct rte_mempool *pool;
    unsigned count;
    uint64_t leaving; /**< ports with frames to flush */
    struct array_port ports[MODEL_PORTS_MAX];
};

/**
 * @brief Open all devices; DPDK runs already.
 *
 * @param port_array Ports.
 * @param conf Description; must outlive the ports.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, or a negative errno with the sentence; then nothing is open.
 */
int port_array_open(struct port_array *port_array, const struct model_conf *conf, struct err *err);
/**
 * @brief Close all devices and the model.
 *
 * @param port_array Ports.
 */
void port_array_close(struct port_array *port_array);

/**
 * @brief Take in what came, let the model run, send what leaves.
 *
 * @param port_array Ports.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return Frames that came.
 */
unsigned port_array_turn(struct port_array *port_array, int64_t now_ns);

/**
 * @brief Look which devices have a link, and what they lost; now and then.
 *
 * @param port_array Ports.
 */
void port_array_look(struct port_array *port_array);

#endif

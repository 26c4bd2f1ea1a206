/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Ports of the modelled switch with their devices; they run the model in real time.
 *
 * The model's time follows the clock from one turn to the next. A frame found in a turn may have
 * arrived at any time since the device was last found empty. The model is given the earliest of
 * these times, so that a switch whose core was taken away for a while catches up, as long as the
 * devices' rings hold the frames. While a wire is busy, or its station paused, its devices are not
 * read: their rings fill, and the station meets a NIC at line rate.
 *
 * A port may have two devices, as a host has a NIC for DPDK and one for its kernel behind one
 * cable. A frame goes to the device by which its destination sent last, else to the first one with
 * a link, and to both if its address is a group's.
 */
#ifndef MODEL_PORT_ARRAY_H
#define MODEL_PORT_ARRAY_H

#include "device.h"
#include "model.h"

#define PORT_ARRAY_DEVICES 2 /* vdev and iface */

struct array_port {
    struct device *devices[PORT_ARRAY_DEVICES];
    unsigned count;
    unsigned ready;       /**< one bit per device */
    double frames_per_ns; /**< shortest frames; 0: no limit */
    uint64_t lost;
    uint64_t heard[PORT_ARRAY_DEVICES]; /**< last source address received by each device */
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
 * @brief Open all devices of a switch; DPDK already runs.
 *
 * @param port_array Ports.
 * @param conf Description; must outlive the ports.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, or a negative errno with an error message; then nothing is open.
 */
int port_array_open(struct port_array *port_array, const struct model_conf *conf, struct err *err);
/**
 * @brief Close all devices and the model.
 *
 * @param port_array Ports.
 */
void port_array_close(struct port_array *port_array);

/**
 * @brief Run the switch once: receive frames, run the model until now, send the frames that leave.
 *
 * @param port_array Ports.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return Number of received frames.
 */
unsigned port_array_turn(struct port_array *port_array, int64_t now_ns);

/**
 * @brief Update which devices have a link, and count the frames that devices lost; to be called
 * occasionally.
 *
 * @param port_array Ports.
 */
void port_array_look(struct port_array *port_array);

#endif

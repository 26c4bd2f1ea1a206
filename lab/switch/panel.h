/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The patch panel: the modelled switch with devices plugged into its ports, in real time.
 *
 * The model's time follows the clock from turn to turn. A frame that is found in a turn came since
 * the device was last seen empty: it is put on the wire as early as that, so that a switch whose
 * core was taken away for a while makes up for it as long as the devices' rings hold what came. As
 * long as a wire is busy, or its station paused, its devices are not read: their rings fill, and
 * the station sees what it would see of a NIC at line rate.
 *
 * A port may have several devices, as a host has a NIC for DPDK and one for its kernel behind one
 * cable: a frame to a station that was heard on one of them goes there, else to the first that has
 * a link, and to all if it is for a group.
 */
#ifndef MODEL_PANEL_H
#define MODEL_PANEL_H

#include "describe.h"
#include "device.h"

#define PANEL_DEVICES 4
#define PANEL_STATIONS 8

struct panel_port {
    struct device *devices[PANEL_DEVICES];
    unsigned count;
    unsigned ready;       /* bits by device */
    double frames_per_ns; /* of the shortest; 0: no limit */
    uint64_t lost;
    struct {
        uint64_t mac;
        unsigned device;
    } stations[PANEL_STATIONS];
    unsigned oldest;
};

struct panel {
    struct model *model;
    struct model_host host;
    struct rte_mempool *pool;
    unsigned count;
    uint64_t leaving; /* ports with frames to flush */
    struct panel_port ports[MODEL_PORTS_MAX];
};

/* Opens all devices; DPDK runs already. `description` must outlive the panel. */
int panel_open(struct panel *panel, const struct description *description, struct err *err);
void panel_close(struct panel *panel);

/* One round: takes in what came, lets the model run up to `now_ns`, sends. How many frames came. */
unsigned panel_turn(struct panel *panel, int64_t now_ns);

/* Looks which devices have a link, and what they lost; now and then. */
void panel_look(struct panel *panel);

#endif

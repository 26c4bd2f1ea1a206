/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Options of transports that send frames through the kernel's sockets.
 */
#ifndef ENGINE_KERNEL_SOCKET_OPTIONS_H
#define ENGINE_KERNEL_SOCKET_OPTIONS_H

#include "frame_lane.h"

#include <errno.h>

/** @brief The first member, `socket`, of such a transport's options. */
struct socket_options {
    uint16_t burst;         /**< frames per system call, max */
    uint16_t catch_up;      /**< frames that a late sender may send beyond its schedule */
    uint32_t window_frames; /**< a flow of a stream sends so many from the window's opening on, and
                               then none; 0: as many as the load gives from start to stop */
    double dither; /**< each departure late by 0 to so many times from one to the next, at random */
};

/** @brief Their entries in the table of options of `struct in`. */
#define SOCKET_OPTIONS(in)                                                                         \
    {OPTION(OPTION_NUMBER, in, "burst", socket.burst), .min = 1, .max = FRAME_BURST_MAX,           \
     .initial = 32},                                                                               \
        {OPTION(OPTION_NUMBER, in, "catch_up", socket.catch_up), .min = 1, .max = UINT16_MAX,      \
         .initial = PACE_CATCH_UP},                                                                \
        {OPTION(OPTION_NUMBER, in, "window_frames", socket.window_frames), .max = UINT32_MAX},     \
    {                                                                                              \
        OPTION(OPTION_REAL, in, "dither", socket.dither)                                           \
    }

/** @brief Change what depends on a phase: option.h's `fit`. */
static inline void socket_options_fit(void *data, const struct phase *phase)
{
    struct socket_options *fitted = data;

    fitted->catch_up = pace_catch_up(fitted->catch_up, phase_mean_size(phase));
}

/** @brief Write what they say of a lane. */
static inline void socket_options_conf(const struct phase *phase, struct frame_conf *conf)
{
    const struct socket_options *options = phase->options;

    conf->burst = options->burst;
    conf->catch_up = options->catch_up;
    conf->window_frames = options->window_frames;
    conf->dither = options->dither;
    conf->sources = 1;
    conf->every_max = UINT32_MAX;
    conf->queues = 1;
    conf->receive_burst = FRAME_BURST_MAX;
}

/** @brief Check a frame's size: frame_lane.h's hook. */
static inline int socket_check_size(const struct frame_lane *lane, uint32_t frame_bytes,
                                    struct err *err)
{
    const struct frame_conf *conf = &lane->conf;

    if (frame_bytes >= conf->least && frame_bytes <= conf->most)
        return 0;
    return err_set(err, -EINVAL,
                   "%s: %s frames have %u to %u bytes here, not %u: headers and signature, and "
                   "the interface's MTU decide",
                   conf->name, conf->header, conf->least, conf->most, frame_bytes);
}

#define SOCKET_DRAIN_BURSTS 1024 /**< at most, before a phase */

/** @brief Throw away what earlier phases left behind. */
static inline void socket_drain(struct frame_lane *lane, int64_t now_ns)
{
    for (int i = 0; i < SOCKET_DRAIN_BURSTS; i++)
        if (lane->receive(lane, now_ns) == 0)
            break;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Ping-pong of a lane of frames (doc/reference/messages.md).
 *
 * Each message is one frame, of headers, signature and the message's bytes, which the destination
 * verifies and sends back with a tag of its own. Nothing is sent again: what does not come back in
 * time is lost. Not a hot path: the next message waits for the last.
 */
#ifndef ENGINE_FRAME_PINGPONG_H
#define ENGINE_FRAME_PINGPONG_H

#include "frame_state.h"
#include "pingpong.h"

struct frame_pingpong {
    struct pingpong game;
    struct prng_sizes *drawn; /**< of the flows that the lane receives */
};

/** @brief Return the bytes of a message's frame, with FCS. */
static inline uint32_t frame_pingpong_size(uint32_t around, uint32_t least, uint32_t bytes)
{
    return around + bytes > least ? around + bytes : least;
}

/**
 * @brief Find the bytes of the phase's messages; of those that are drawn the largest alone.
 * @param around bytes of a frame that are not the message's, FCS included
 * @param most bytes of the longest frame
 * @return how many sizes are in `bytes`, or -EINVAL with the sentence: one has no room in a frame.
 */
int frame_pingpong_sizes(const struct lane_request *request, const char *port, uint32_t around,
                         uint32_t most, uint32_t bytes[TRANSPORT_SIZES_MAX], struct err *err);

/** @brief Make a lane's ping-pong; 0 or -ENOMEM. The lane's request and conf are set. */
int frame_pingpong_make(struct frame_lane *lane);
void frame_pingpong_free(struct frame_lane *lane);

/** @brief Begin what is due and give up what is lost: the lane's `send`. Returns when to call
 * again. */
int64_t frame_pingpong_poll(struct frame_lane *lane, int64_t now_ns);

/** @brief Take a ping-pong's message or answer; false: it is none. */
bool frame_pingpong_take(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns);

#endif

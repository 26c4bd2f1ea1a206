/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ping-pong of transports of frames (doc/reference/messages.md): each message is one frame, of
 * headers, signature and the message's bytes, which the destination verifies and sends back with a
 * tag of its own. Nothing is sent again: what does not come back in time is lost. How a frame
 * travels, and how its number is judged, is the transport's.
 */
#ifndef ENGINE_FRAME_PINGPONG_H
#define ENGINE_FRAME_PINGPONG_H

#include "pingpong.h"
#include "signature.h"

/* A message, or with `back` what is sent back of one. */
struct pingpong_frame {
    const struct lane_flow *flow;
    uint32_t place; /* in the lane's sends; `back`: in its receives */
    bool back;
    uint32_t number;
    int64_t stamp_ns; /* since the phase's start, by the source's clock */
    uint32_t bytes;   /* of the message */
};

struct frame_pingpong {
    struct pingpong game;
    /* Whether the transport took the frame. */
    bool (*send)(struct lane *lane, const struct pingpong_frame *frame);
    uint32_t around;          /* bytes of a frame that are not the message's, FCS included */
    uint32_t least;           /* of a whole frame */
    struct prng_sizes *drawn; /* of the flows that the lane receives */
    uint16_t *flow_of;        /* by destination's rank: place in `sends` + 1; 0: none */
};

/* Bytes of a message's frame, with FCS. */
static inline uint32_t frame_pingpong_size(uint32_t around, uint32_t least, uint32_t bytes)
{
    return around + bytes > least ? around + bytes : least;
}

/* Bytes of the phase's messages, at most `TRANSPORT_SIZES_MAX`, in `bytes`; returns how many. Of
 * those that are drawn the largest alone. -EINVAL with the sentence: one has no room in a frame of
 * `most` bytes. */
int frame_pingpong_sizes(const struct lane_request *request, const char *port, uint32_t around,
                         uint32_t most, uint32_t bytes[TRANSPORT_SIZES_MAX], struct err *err);

/* Main thread: for a lane whose request is set. -ENOMEM; free it then, too. */
int frame_pingpong_make(struct frame_pingpong *game, struct lane *lane);
void frame_pingpong_free(struct frame_pingpong *game);

/* Worker: begins what is due, gives up what is lost; returns when to call again. */
int64_t frame_pingpong_poll(struct frame_pingpong *game, int64_t now_ns);
/* A sound answer came for this rank. */
void frame_pingpong_take_answer(struct frame_pingpong *game, const struct signature *signature,
                                uint32_t frame_bytes);
/* Whether the flow's message of this number has a frame of so many bytes. */
bool frame_pingpong_fits(const struct frame_pingpong *game, uint32_t place, uint64_t number,
                         uint32_t frame_bytes);
/* A message was delivered: counts it, and sends it back. */
void frame_pingpong_reply(struct frame_pingpong *game, uint32_t place, uint64_t number,
                          const struct signature *signature, int64_t now_ns);

#endif

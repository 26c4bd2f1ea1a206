/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A lane of frames: units that may be lost, of a transport that only moves bytes.
 *
 * frame_lane.c makes a lane and keeps its times and its counts; frame_state.h is what it keeps;
 * frame_judge.c judges sequence numbers; frame_pingpong.c sends single frames that wait for each
 * other; frame_hot.h is the hot path, which a transport's one hot file includes behind its hooks,
 * so that the compiler makes variants of it. A transport's own lane begins with `struct
 * frame_lane`. A frame is FRAME_TEMPLATE bytes that differ by stream, of which the signature
 * differs by frame, and fill.
 */
#ifndef ENGINE_FRAME_LANE_H
#define ENGINE_FRAME_LANE_H

#include "frame_judge.h"
#include "frame_pingpong.h"
#include "frame_state.h"

/**
 * @brief Check a request against what every transport of frames can do.
 * @return 0, or -EINVAL with the sentence.
 */
int frame_lane_check(const struct lane_request *request, const struct frame_conf *conf,
                     struct err *err);
/**
 * @brief Make what a lane of frames keeps: sizes, streams, tables.
 *
 * `lane` is zero but for `lane.request`; frame_lane_free takes it back, also after an error.
 * @return 0, -ENOMEM, or an error of a hook with the sentence.
 */
int frame_lane_make(struct frame_lane *lane, const struct frame_conf *conf, struct err *err);
void frame_lane_free(struct frame_lane *lane);
/** @brief Begin the phase: poll calls it first. */
void frame_lane_begin(struct frame_lane *lane, int64_t now_ns);
/** @brief Write the streams' templates, once partners are known. */
void frame_lane_build(struct frame_lane *lane);
/** @brief Drop the frames that still wait to be sent on, and count them; `release` frees one. */
void frame_lane_drop(struct frame_lane *lane, void (*release)(void *frame));

/** As the transport's functions of these names. */
int64_t frame_lane_poll(struct lane *lane, int64_t now_ns);
bool frame_lane_account(struct lane *lane, enum account what);
void frame_lane_read_flow(struct lane *lane, const struct lane_flow *flow,
                          struct flow_reading *reading);

/** @brief Bring the live counts of a stream's flow up to date with it. */
void frame_account_sent(struct frame_lane *lane, uint32_t number);
void frame_account_received(struct frame_lane *lane, uint32_t number);

/** @brief Count a frame that is not as the lane's flows send them: a probe, which is answered or
 * measured, a damaged, a misdelivered or a foreign one. `seen` is at least a signature long. */
void frame_lane_unexpected(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns);

#endif

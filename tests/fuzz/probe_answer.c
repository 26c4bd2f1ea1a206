/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fuzzing of answers to latency probes: the input is signatures as they lie in a frame, each behind
 * a byte of what happens before it: how many probes leave (four bits) and by which of two queues
 * the answer comes. Whatever comes, no more answers count than probes were sent.
 */
#include "frame_prober.h"
#include "fuzz.h"

#include <string.h>

#define PARTNER 3u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct phase phase = {
        .tag = 7, .sizes = {64}, .size_count = 1, .latency = {.probe_fps = 10}};
    const struct lane_flow flow = {.dst = PARTNER};
    struct frame_prober probers[2] = {0};
    struct latency sum = {0};
    int64_t now_ns = 0;

    for (unsigned i = 0; i < 2; i++) {
        struct lane_request request = {.phase = &phase, .port_sends = &flow, .port_send_count = 1};

        check(frame_prober_make(&probers[i], &request, i > 0 ? &probers[0] : NULL) == 0);
    }
    for (; size > SIGNATURE_BYTES; bytes += SIGNATURE_BYTES + 1, size -= SIGNATURE_BYTES + 1) {
        struct signature answer;

        for (unsigned i = 0; i < bytes[0] % 16u; i++, now_ns += 1000)
            frame_prober_leaves(&probers[0], &flow, now_ns);
        memcpy(&answer, bytes + 1, sizeof answer);
        (void)signature_sound(&answer);
        (void)frame_prober_measure(&probers[bytes[0] >> 7], &answer, now_ns);
    }
    for (unsigned i = 0; i < 2; i++)
        check(frame_prober_sum(&probers[i], &flow, &sum));
    check(sum.histogram.count <= sum.sent);
    check(sum.histogram.count == 0 || sum.histogram.max_ns <= (uint64_t)now_ns);
    frame_prober_free(&probers[1]);
    frame_prober_free(&probers[0]);
    return 0;
}

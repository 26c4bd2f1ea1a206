/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fuzzing of answers to latency probes: the input is signatures in the form of a frame's, each
 * after a byte of what happens before it: the number of probes that leave (four bits), and the
 * queue (of two) by which the answer comes. For any input, no more answers count than probes were
 * sent.
 */
#include "fuzz.h"
#include "prober.h"
#include "signature.h"

#include <string.h>

#define PARTNER 3u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct phase phase = {.sizes = {64}, .size_count = 1, .close_ns = INT64_MAX};
    const struct lane_flow flow = {.dst = PARTNER};
    static struct flow_reading reading;
    struct lane lanes[2] = {0};
    struct prober probers[2] = {0};
    const struct latency *sum = &reading.latency[LATENCY_ROUND_TRIP];
    int64_t now_ns = 0;

    memset(&reading, 0, sizeof reading);
    for (unsigned i = 0; i < 2; i++) {
        lanes[i].request =
            (struct lane_request){.phase = &phase, .port_sends = &flow, .port_send_count = 1};
        check(prober_make(&probers[i], &lanes[i], 10, i > 0 ? &probers[0] : NULL) == 0);
    }
    for (; size > SIGNATURE_BYTES; bytes += SIGNATURE_BYTES + 1, size -= SIGNATURE_BYTES + 1) {
        struct signature answer;

        for (unsigned i = 0; i < bytes[0] % 16u; i++, now_ns += 1000)
            prober_leaves(&probers[0], 0, now_ns);
        memcpy(&answer, bytes + 1, sizeof answer);
        (void)signature_sound(&answer);
        (void)prober_back(&probers[bytes[0] >> 7], 0, be32toh(answer.sequence),
                          signature_ns(&answer), now_ns);
    }
    for (unsigned i = 0; i < 2; i++)
        prober_read(&probers[i], &flow, &reading);
    check(reading.measured[LATENCY_ROUND_TRIP]);
    check(sum->histogram.count <= sum->sent);
    check(sum->histogram.count == 0 || sum->histogram.max_ns <= (uint64_t)now_ns);
    prober_free(&probers[1]);
    prober_free(&probers[0]);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fuzzing of what the other end of a queue pair says: the blob that connects it, and messages. The
 * input is a byte of flags (which service, which sizes), then records of two bytes of length and
 * so many bytes, each taken as a blob, as a notice and as a message of a stream.
 */
#include "qp_info.h"
#include "verifier.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool right)
{
    if (!right)
        abort();
}

/* What is read is written back to the same bytes, and both ends come to the same. */
static void take_blob(const uint8_t *bytes, size_t size)
{
    struct blob blob = {.size = (uint16_t)size}, again;
    struct qp_info mine = {.number = 3, .connected_to = 5, .turn = 7}, theirs;

    if (size > sizeof blob.bytes)
        return;
    memcpy(blob.bytes, bytes, size);
    if (!qp_info_read(&theirs, &blob))
        return;
    qp_info_write(&theirs, &again);
    check(again.size == blob.size && memcmp(again.bytes, blob.bytes, blob.size) == 0);
    check(qp_info_connected(&mine, &theirs) == qp_info_connected(&theirs, &mine));
}

static void take_notice(const struct verbs_script *script, const uint8_t *bytes, size_t size)
{
    struct verbs_notice notice = {0};
    uint64_t messages, sum;

    memcpy(&notice, bytes, size < sizeof notice ? size : sizeof notice);
    (void)verbs_notice_read(&notice, VERBS_KIND_EOF, script, &messages, &sum);
    (void)verbs_notice_read(&notice, VERBS_KIND_CREDIT, script, &messages, &sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const uint32_t sizes[] = {64, 7, 1500, 20};
    static bool filled;
    struct flow_side side = {0};
    struct port_count count = {0};
    struct verbs_verifier verifier = {.side = &side, .count = &count};
    uint64_t fed = 0;

    if (!filled)
        verbs_payload_init();
    filled = true;
    if (size == 0)
        return 0;
    verifier.script = (struct verbs_script){.sizes = sizes,
                                            .size_count = 1u + bytes[0] % 4u,
                                            .total = (bytes[0] & 4) != 0 ? FLOW_ENDLESS : 100000,
                                            .stream = 1,
                                            .tag = 0xb1e4,
                                            .src = 1,
                                            .dst = 2};
    verifier.reliable = (bytes[0] & 8) != 0;
    verifier.places = (bytes[0] & 16) != 0;
    verifier.whole = (bytes[0] & 32) != 0;
    verbs_verify_start(&verifier);
    for (bytes++, size--; size > 2;) {
        size_t length = (size_t)bytes[0] << 8 | bytes[1];
        uint8_t *message;

        bytes += 2;
        size -= 2;
        length = length < size ? length : size;
        message = malloc(length + 1);
        check(message != NULL);
        memcpy(message, bytes, length);
        take_blob(message, length);
        take_notice(&verifier.script, message, length);
        if (length > 0)
            (void)verbs_verify_message(&verifier, message, (uint32_t)length);
        fed += length;
        check(side.live.payload_bytes <= fed);
        free(message);
        bytes += length;
        size -= length;
    }
    return 0;
}

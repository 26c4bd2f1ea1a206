/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_options.h"

#define MEMBER(type, key, member) OPTION(type, verbs_options, key, member)
#define RETRY_WHY "with 7 a dead partner is never noticed"

static const char *const service_words[] = {
    [VERBS_RC] = "rc", [VERBS_UC] = "uc", [VERBS_UD] = "ud", NULL};
static const char *const operation_words[] = {[VERBS_SEND] = "send", [VERBS_WRITE] = "write", NULL};
static const char *const completion_words[] = {[VERBS_COMPLETION_AUTO] = "auto",
                                               [VERBS_COMPLETION_POLL] = "poll",
                                               [VERBS_COMPLETION_EVENT] = "event",
                                               NULL};

/* What depends on the device is checked when a phase is prepared. */
static const struct option options[] = {
    {MEMBER(OPTION_WORD, "service", service), .words = service_words},
    {MEMBER(OPTION_WORD, "operation", operation), .words = operation_words},
    {MEMBER(OPTION_NUMBER, "depth", depth), .min = 1, .max = UINT16_MAX, .initial = 128},
    {MEMBER(OPTION_NUMBER, "queue_pairs", queue_pairs), .min = 1, .max = UINT16_MAX, .initial = 1},
    {MEMBER(OPTION_NUMBER, "inline", inline_bytes), .max = UINT16_MAX, .initial = VERBS_AUTOMATIC,
     .why = "no device takes more"},
    {MEMBER(OPTION_NUMBER, "signal_every", signal_every), .max = UINT16_MAX},
    {MEMBER(OPTION_NUMBER, "mtu", mtu), .max = UINT16_MAX},
    {MEMBER(OPTION_NUMBER, "gid_index", gid_index), .max = UINT8_MAX, .initial = VERBS_AUTOMATIC},
    {MEMBER(OPTION_NUMBER, "service_level", service_level), .max = UINT8_MAX},
    {MEMBER(OPTION_NUMBER, "traffic_class", traffic_class), .max = UINT8_MAX},
    {MEMBER(OPTION_NUMBER, "pkey_index", pkey_index), .max = UINT16_MAX},
    {MEMBER(OPTION_NUMBER, "retry", retry), .max = 6, .initial = 6, .why = RETRY_WHY},
    {MEMBER(OPTION_NUMBER, "rnr_retry", rnr_retry), .max = 6, .initial = 6, .why = RETRY_WHY},
    {MEMBER(OPTION_NUMBER, "timeout", timeout), .min = 1, .max = UINT8_MAX, .initial = 14},
    {MEMBER(OPTION_WORD, "completion", completion), .words = completion_words},
    {MEMBER(OPTION_NUMBER, "reuse", reuse), .max = UINT32_MAX, .initial = 64},
    {.key = NULL},
};

const struct option_table verbs_option_table = {options, sizeof(struct verbs_options), NULL};

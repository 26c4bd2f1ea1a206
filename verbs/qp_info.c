/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_info.h"

#include <assert.h>
#include <string.h>

#define VERSION 3u

static_assert(sizeof(struct qp_info) == 88, "layout without holes");
static_assert(sizeof(struct qp_info) <= BLOB_BYTES_MAX, "fits into a blob");

void qp_info_write(const struct qp_info *info, struct blob *blob)
{
    struct qp_info out = *info;

    out.version = VERSION;
    *blob = (struct blob){.size = sizeof out};
    memcpy(blob->bytes, &out, sizeof out);
}

bool qp_info_read(struct qp_info *info, const struct blob *blob)
{
    if (blob->size != sizeof *info)
        return false;
    memcpy(info, blob->bytes, sizeof *info);
    return info->version == VERSION;
}

bool qp_info_connected(const struct qp_info *mine, const struct qp_info *theirs)
{
    return mine->connected_to != 0 && theirs->connected_to != 0 &&
           mine->connected_to == theirs->number && theirs->connected_to == mine->number &&
           mine->turn == theirs->turn;
}

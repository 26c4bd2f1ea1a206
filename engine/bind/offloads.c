/* SPDX-License-Identifier: BSD-3-Clause */
#include "ethtool.h"
#include "interface.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCKS(count) (((count) + 31) / 32) /* of 32 features each */

/* The features of one interface: their names, and what is. */
struct features {
    int fd;
    uint32_t count;
    struct ethtool_gstrings *names;
    struct ethtool_gfeatures *now;
};

static void close_features(struct features *features)
{
    if (features->fd >= 0)
        close(features->fd);
    free(features->names);
    free(features->now);
}

/* 0, or a negative errno; close_features in any case. */
static int open_features(struct features *features, const char *interface)
{
    union {
        struct ethtool_sset_info info;
        uint32_t words[sizeof(struct ethtool_sset_info) / sizeof(uint32_t) + 1];
    } set = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = UINT64_C(1) << ETH_SS_FEATURES}};
    int rc;

    *features = (struct features){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    rc = features->fd < 0 ? -errno : ethtool_ask(features->fd, interface, &set);
    features->count = rc == 0 && set.info.sset_mask != 0 ? set.info.data[0] : 0;
    if (features->count == 0)
        return rc != 0 ? rc : -EOPNOTSUPP;
    features->names =
        calloc(1, sizeof *features->names + (size_t)features->count * ETH_GSTRING_LEN);
    features->now = calloc(1, sizeof *features->now +
                                  BLOCKS(features->count) * sizeof features->now->features[0]);
    if (features->names == NULL || features->now == NULL)
        return -ENOMEM;
    features->names->cmd = ETHTOOL_GSTRINGS;
    features->names->string_set = ETH_SS_FEATURES;
    features->names->len = features->count;
    features->now->cmd = ETHTOOL_GFEATURES;
    features->now->size = BLOCKS(features->count);
    rc = ethtool_ask(features->fd, interface, features->names);
    return rc == 0 ? ethtool_ask(features->fd, interface, features->now) : rc;
}

static const char *name_of(const struct features *features, uint32_t i)
{
    return (const char *)features->names->data + (size_t)i * ETH_GSTRING_LEN;
}

/* Can feature `i` be changed? `requested`: is it asked for? */
static bool is_changeable(const struct features *features, uint32_t i, bool *requested)
{
    const struct ethtool_get_features_block *block = &features->now->features[i / 32];
    uint32_t bit = 1u << i % 32;

    *requested = (block->requested & bit) != 0;
    return (block->available & ~block->never_changed & bit) != 0;
}

json_t *bind_offloads_read(const char *interface)
{
    json_t *offloads = json_object();
    struct features features;
    bool requested;

    if (open_features(&features, interface) == 0)
        for (uint32_t i = 0; i < features.count; i++)
            if (is_changeable(&features, i, &requested))
                json_object_set_new(offloads, name_of(&features, i), json_boolean(requested));
    close_features(&features);
    return offloads;
}

int bind_offloads_write(const char *interface, const json_t *offloads)
{
    struct ethtool_sfeatures *change = NULL;
    struct features features;
    bool requested, differs = false;
    int rc;

    if (json_object_size(offloads) == 0)
        return 0;
    rc = open_features(&features, interface);
    if (rc == 0)
        change = calloc(1, sizeof *change + BLOCKS(features.count) * sizeof change->features[0]);
    if (rc == 0 && change == NULL)
        rc = -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < features.count; i++) {
        const json_t *wanted = json_object_get(offloads, name_of(&features, i));

        if (!is_changeable(&features, i, &requested) || wanted == NULL ||
            json_is_true(wanted) == requested)
            continue;
        change->features[i / 32].valid |= 1u << i % 32;
        change->features[i / 32].requested |= json_is_true(wanted) ? 1u << i % 32 : 0;
        differs = true;
    }
    if (differs) {
        change->cmd = ETHTOOL_SFEATURES;
        change->size = BLOCKS(features.count);
        rc = ethtool_ask(features.fd, interface, change);
    }
    free(change);
    close_features(&features);
    return rc;
}

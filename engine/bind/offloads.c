/* SPDX-License-Identifier: BSD-3-Clause */
#include "interface.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCKS(count) (((count) + 31) / 32) /* of 32 features each */

/* The features of one interface: how many, their names, what is. */
struct features {
    char interface[IF_NAMESIZE];
    int fd;
    uint32_t count;
    struct ethtool_gstrings *names;
    struct ethtool_gfeatures *now;
};

static int ask(const struct features *features, void *command)
{
    struct ifreq request = {.ifr_data = command};

    memcpy(request.ifr_name, features->interface, sizeof features->interface);
    return ioctl(features->fd, SIOCETHTOOL, &request) < 0 ? -errno : 0;
}

static uint32_t count_features(const struct features *features)
{
    _Alignas(struct ethtool_sset_info) char
        buffer[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)] = {0};
    struct ethtool_sset_info *question = (struct ethtool_sset_info *)(void *)buffer;

    question->cmd = ETHTOOL_GSSET_INFO;
    question->sset_mask = 1u << ETH_SS_FEATURES;
    return ask(features, question) == 0 && question->sset_mask != 0 ? question->data[0] : 0;
}

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
    int rc;

    *features = (struct features){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    snprintf(features->interface, sizeof features->interface, "%s", interface);
    if (features->fd < 0)
        return -errno;
    features->count = count_features(features);
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
    rc = features->count > 0 ? ask(features, features->names) : -EOPNOTSUPP;
    return rc == 0 ? ask(features, features->now) : rc;
}

static const char *name_of(const struct features *features, uint32_t i)
{
    return (const char *)features->names->data + (size_t)i * ETH_GSTRING_LEN;
}

json_t *bind_offloads_read(const char *interface)
{
    json_t *offloads = json_object();
    struct features features;

    if (open_features(&features, interface) == 0) {
        for (uint32_t i = 0; i < features.count; i++) {
            const struct ethtool_get_features_block *block = &features.now->features[i / 32];
            uint32_t bit = 1u << i % 32;

            if ((block->available & ~block->never_changed & bit) != 0)
                json_object_set_new(offloads, name_of(&features, i),
                                    json_boolean((block->requested & bit) != 0));
        }
    }
    close_features(&features);
    return offloads;
}

/* Marks the features that differ from what is wanted; how many. */
static uint32_t mark_changes(const struct features *features, const json_t *offloads,
                             struct ethtool_sfeatures *change)
{
    uint32_t changes = 0;

    for (uint32_t i = 0; i < features->count; i++) {
        const struct ethtool_get_features_block *block = &features->now->features[i / 32];
        const json_t *wanted = json_object_get(offloads, name_of(features, i));
        uint32_t bit = 1u << i % 32;

        if (wanted == NULL || (block->available & ~block->never_changed & bit) == 0 ||
            json_is_true(wanted) == ((block->requested & bit) != 0))
            continue;
        change->features[i / 32].valid |= bit;
        change->features[i / 32].requested |= json_is_true(wanted) ? bit : 0;
        changes++;
    }
    return changes;
}

int bind_offloads_write(const char *interface, const json_t *offloads)
{
    struct ethtool_sfeatures *change = NULL;
    struct features features;
    int rc = 0;

    if (json_object_size(offloads) == 0)
        return 0;
    rc = open_features(&features, interface);
    if (rc == 0)
        change = calloc(1, sizeof *change + BLOCKS(features.count) * sizeof change->features[0]);
    if (rc == 0 && change == NULL)
        rc = -ENOMEM;
    if (rc == 0) {
        change->cmd = ETHTOOL_SFEATURES;
        change->size = BLOCKS(features.count);
        if (mark_changes(&features, offloads, change) > 0)
            rc = ask(&features, change);
    }
    free(change);
    close_features(&features);
    return rc;
}

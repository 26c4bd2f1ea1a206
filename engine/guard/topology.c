/* SPDX-License-Identifier: BSD-3-Clause */
#include "topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A host has tens of devices, seldom thousands: one reallocation each is cheap enough. */
static int append(void **array, size_t *count, const void *element, size_t size)
{
    char *grown = realloc(*array, (*count + 1) * size);

    if (!grown)
        return -ENOMEM;
    memcpy(grown + *count * size, element, size);
    *array = grown;
    (*count)++;
    return 0;
}

int topology_add_link(struct topology *topology, const struct topology_link *link)
{
    void *links = topology->links;
    int code = append(&links, &topology->link_count, link, sizeof(*link));

    topology->links = links;
    return code;
}

int topology_add_use(struct topology *topology, const struct critical_use *use)
{
    void *uses = topology->uses;
    int code = append(&uses, &topology->use_count, use, sizeof(*use));

    topology->uses = uses;
    return code;
}

int topology_add_space(struct topology *topology, const struct topology_space *space)
{
    void *spaces = topology->spaces;
    int code = append(&spaces, &topology->space_count, space, sizeof(*space));

    topology->spaces = spaces;
    return code;
}

void topology_free(struct topology *topology)
{
    free(topology->links);
    free(topology->uses);
    free(topology->spaces);
    *topology = (struct topology){0};
}

struct topology_link *topology_find(const struct topology *topology, int space, const char *name)
{
    for (size_t i = 0; i < topology->link_count; i++)
        if (topology->links[i].space == space && strcmp(topology->links[i].name, name) == 0)
            return &topology->links[i];
    return NULL;
}

struct topology_link *topology_find_index(const struct topology *topology, int space, int index)
{
    for (size_t i = 0; i < topology->link_count; i++)
        if (topology->links[i].space == space && topology->links[i].index == index)
            return &topology->links[i];
    return NULL;
}

/* One of two linked devices is marked: mark the other. True when that is news. */
static bool spread(struct topology_link *one, struct topology_link *other)
{
    if (!other || one->reached == other->reached)
        return false;
    one->reached = other->reached = true;
    return true;
}

void topology_mark_connected(struct topology *topology)
{
    bool news;

    do {
        news = false;
        for (size_t i = 0; i < topology->link_count; i++) {
            struct topology_link *link = &topology->links[i];
            struct topology_link *master = topology_find_index(topology, link->space, link->master);

            if (master && strcmp(master->kind, "vrf") != 0)
                news |= spread(link, master);
            news |= spread(link, topology_find_index(topology, link->peer_space, link->peer));
        }
    } while (news);
}

bool topology_is_tunnel(const struct topology_link *link)
{
    /* No packet of theirs leaves, or it leaves by a link that topology_mark_connected walks. */
    static const char *const plain[] = {
        "",       "bond",    "bridge",  "dummy",  "ifb",  "ipoib", "ipvlan", "ipvtap",
        "macsec", "macvlan", "macvtap", "netkit", "team", "veth",  "vlan",   "vrf"};

    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (strcmp(link->kind, plain[i]) == 0)
            return false;
    return true;
}

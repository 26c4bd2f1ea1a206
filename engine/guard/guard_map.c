/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard_map.h"

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

int guard_map_add_link(struct guard_map *map, const struct guard_link *link)
{
    void *links = map->links;
    int code = append(&links, &map->link_count, link, sizeof(*link));

    map->links = links;
    return code;
}

int guard_map_add_use(struct guard_map *map, const struct guard_use *use)
{
    void *uses = map->uses;
    int code = append(&uses, &map->use_count, use, sizeof(*use));

    map->uses = uses;
    return code;
}

void guard_map_free(struct guard_map *map)
{
    free(map->links);
    free(map->uses);
    free(map->spaces);
    *map = (struct guard_map){0};
}

struct guard_link *guard_map_find(const struct guard_map *map, int space, const char *name)
{
    for (size_t i = 0; i < map->link_count; i++)
        if (map->links[i].space == space && strcmp(map->links[i].name, name) == 0)
            return &map->links[i];
    return NULL;
}

static struct guard_link *find_index(const struct guard_map *map, int space, int index)
{
    for (size_t i = 0; i < map->link_count; i++)
        if (map->links[i].space == space && map->links[i].index == index)
            return &map->links[i];
    return NULL;
}

/* One of two linked devices is marked: mark the other. True when that is news. */
static bool spread(struct guard_link *one, struct guard_link *other)
{
    if (!other || one->reached == other->reached)
        return false;
    one->reached = other->reached = true;
    return true;
}

void guard_map_reach(struct guard_map *map)
{
    bool news;

    do {
        news = false;
        for (size_t i = 0; i < map->link_count; i++) {
            struct guard_link *link = &map->links[i];
            struct guard_link *master = find_index(map, link->space, link->master);

            if (master && strcmp(master->kind, "vrf") != 0)
                news |= spread(link, master);
            news |= spread(link, find_index(map, link->peer_space, link->peer));
        }
    } while (news);
}

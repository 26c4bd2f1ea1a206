/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings.h"

#include "sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define POOL_2MIB "%s/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

json_t *bind_settings_read(const char *root, const char *interface)
{
    static const char *const families[] = {"ipv4", "ipv6"};
    json_t *settings = json_object();

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        char key[NAME_MAX + 8], value[256];
        glob_t files;

        sysfs_glob(&files, "%s/proc/sys/net/%s/conf/%s/*", root, families[i], interface);
        for (size_t k = 0; k < files.gl_pathc; k++) {
            snprintf(key, sizeof key, "%s/%s", families[i], strrchr(files.gl_pathv[k], '/') + 1);
            if (sysfs_line(value, sizeof value, "%s", files.gl_pathv[k]))
                json_object_set_new(settings, key, json_string(value));
        }
        globfree(&files);
    }
    return settings;
}

void bind_settings_write(const struct bind_place *place, const char *interface,
                         const json_t *settings)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)settings, key, value)
    {
        const char *wanted = json_string_value(value), *slash = strchr(key, '/');
        char path[PATH_MAX], now[256];

        if (wanted == NULL || slash == NULL)
            continue;
        snprintf(path, sizeof path, "%s/proc/sys/net/%.*s/conf/%s%s", place->root,
                 (int)(slash - key), key, interface, slash);
        if (sysfs_line(now, sizeof now, "%s", path) && strcmp(now, wanted) != 0)
            (void)place->kernel->write(path, wanted);
    }
}

json_t *bind_hugepages_read(const char *root)
{
    static const char *const places[] = {"/sys/devices/system/node/node*/hugepages/*/nr_hugepages",
                                         "/sys/kernel/mm/hugepages/*/nr_hugepages"};
    json_t *pages = json_object();

    for (size_t i = 0; i < sizeof places / sizeof places[0] && json_object_size(pages) == 0; i++) {
        glob_t files;

        sysfs_glob(&files, "%s%s", root, places[i]);
        for (size_t k = 0; k < files.gl_pathc; k++)
            json_object_set_new(pages, files.gl_pathv[k] + strlen(root),
                                json_integer(sysfs_number(0, "%s", files.gl_pathv[k])));
        globfree(&files);
    }
    return pages;
}

static int write_pages(const struct bind_place *place, const char *path, long long count)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", count);
    return sysfs_number(0, "%s", path) != count ? place->kernel->write(path, text) : 0;
}

int bind_hugepages_reserve(const struct bind_place *place, unsigned count, struct err *err)
{
    char path[PATH_MAX];
    int rc;

    snprintf(path, sizeof path, POOL_2MIB, place->root);
    if (sysfs_number(0, "%s", path) >= count)
        return 0;
    rc = write_pages(place, path, count);
    if (rc != 0)
        return err_set(err, rc, "%u hugepages can't be reserved: %s.", count, strerror(-rc));
    if (sysfs_number(0, "%s", path) < count)
        return err_set(err, -ENOMEM,
                       "Only %lld of %u hugepages of 2 MiB could be reserved: memory is short or "
                       "in pieces; reserve them right after the boot.",
                       sysfs_number(0, "%s", path), count);
    return 0;
}

int bind_hugepages_write(const struct bind_place *place, const json_t *before, struct err *err)
{
    const char *key;
    json_t *value;
    int rc = 0;

    json_object_foreach((json_t *)(uintptr_t)before, key, value)
    {
        char path[PATH_MAX];
        int code;

        snprintf(path, sizeof path, "%s%s", place->root, key);
        code = write_pages(place, path, json_integer_value(value));
        if (code != 0)
            rc = err_set(err, code, "The hugepages can't be restored (%s): %s.", path,
                         strerror(-code));
    }
    return rc;
}

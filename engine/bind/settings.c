/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOL_2MIB "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

static const char *const families[] = {"ipv4", "ipv6"};

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool there = file != NULL && fgets(line, (int)size, file) != NULL;

    if (file != NULL)
        fclose(file);
    line[there ? strcspn(line, "\n") : 0] = '\0';
    return there;
}

static void read_family(const char *root, const char *interface, const char *family,
                        json_t *settings)
{
    char pattern[PATH_MAX], key[NAME_MAX + 8], value[256];
    glob_t files = {0};

    snprintf(pattern, sizeof pattern, "%s/proc/sys/net/%s/conf/%s/*", root, family, interface);
    if (glob(pattern, 0, NULL, &files) != 0)
        return;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        snprintf(key, sizeof key, "%s/%s", family, strrchr(files.gl_pathv[i], '/') + 1);
        if (read_line(files.gl_pathv[i], value, sizeof value))
            json_object_set_new(settings, key, json_string(value));
    }
    globfree(&files);
}

json_t *bind_settings_read(const char *root, const char *interface)
{
    json_t *settings = json_object();

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        read_family(root, interface, families[i], settings);
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
        if (read_line(path, now, sizeof now) && strcmp(now, wanted) != 0)
            (void)place->kernel->write(path, wanted);
    }
}

static long read_pages(const char *path)
{
    char line[32];

    return read_line(path, line, sizeof line) ? strtol(line, NULL, 10) : 0;
}

json_t *bind_hugepages_read(const char *root)
{
    static const char *const places[] = {"/sys/devices/system/node/node*/hugepages/*/nr_hugepages",
                                         "/sys/kernel/mm/hugepages/*/nr_hugepages"};
    json_t *pages = json_object();

    for (size_t i = 0; i < sizeof places / sizeof places[0] && json_object_size(pages) == 0; i++) {
        char pattern[PATH_MAX];
        glob_t files = {0};

        snprintf(pattern, sizeof pattern, "%s%s", root, places[i]);
        if (glob(pattern, 0, NULL, &files) != 0)
            continue;
        for (size_t k = 0; k < files.gl_pathc; k++)
            json_object_set_new(pages, files.gl_pathv[k] + strlen(root),
                                json_integer(read_pages(files.gl_pathv[k])));
        globfree(&files);
    }
    return pages;
}

int bind_hugepages_reserve(const struct bind_place *place, unsigned count, struct err *err)
{
    char path[PATH_MAX], text[16];
    int rc;

    snprintf(path, sizeof path, "%s" POOL_2MIB, place->root);
    if (read_pages(path) >= (long)count)
        return 0;
    snprintf(text, sizeof text, "%u", count);
    rc = place->kernel->write(path, text);
    if (rc != 0)
        return err_set(err, rc, "%u hugepages can't be reserved: %s.", count, strerror(-rc));
    if (read_pages(path) < (long)count)
        return err_set(err, -ENOMEM,
                       "Only %ld of %u hugepages of 2 MiB could be reserved: memory is short or in "
                       "pieces; reserve them right after the boot.",
                       read_pages(path), count);
    return 0;
}

int bind_hugepages_write(const struct bind_place *place, const json_t *before, struct err *err)
{
    const char *key;
    json_t *value;
    int rc = 0;

    json_object_foreach((json_t *)(uintptr_t)before, key, value)
    {
        char path[PATH_MAX], text[32];
        int code = 0;

        snprintf(path, sizeof path, "%s%s", place->root, key);
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        if (read_pages(path) != (long)json_integer_value(value))
            code = place->kernel->write(path, text);
        if (code != 0)
            rc = err_set(err, code, "The hugepages can't be given back (%s): %s.", path,
                         strerror(-code));
    }
    return rc;
}
